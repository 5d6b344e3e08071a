// Which tensors the patterns of lora.targets choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/error.h"
#include "model/model.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_gguf.h"

namespace retro::model {
namespace {

TEST(Matches, StarsAreAnyCharactersAndQuestionMarksOne) {
  for (const auto& [pattern, text] :
       std::vector<std::pair<const char*, const char*>>{{"", ""},
                                                        {"*", ""},
                                                        {"**", "a"},
                                                        {"abc", "abc"},
                                                        {"a?c", "abc"},
                                                        {"a*c", "ac"},
                                                        {"a*c", "abcbc"},
                                                        {"*a*b", "xaabab"},
                                                        {"blk.*.attn_q.weight", "blk.17.attn_q.weight"},
                                                        {"blk.?.*", "blk.3.ffn_up.weight"},
                                                        {"*.weight", "blk.0.ffn_up.weight"}}) {
    EXPECT_TRUE(matches(pattern, text)) << pattern << ' ' << text;
  }
  for (const auto& [pattern, text] :
       std::vector<std::pair<const char*, const char*>>{{"", "a"},
                                                        {"?", ""},
                                                        {"?", "ab"},
                                                        {"abc", "ab"},
                                                        {"ab", "abc"},
                                                        {"a.c", "abc"},
                                                        {"A", "a"},
                                                        {"a*c", "acb"},
                                                        {"*a*b", "bba"},
                                                        {"blk.?.*", "blk.12.ffn_up.weight"},
                                                        {"[ab]", "a"}}) {
    EXPECT_FALSE(matches(pattern, text)) << pattern << ' ' << text;
  }
}

// Against the recursive definition, over all patterns and texts of a few characters.
TEST(Matches, IsItsDefinition) {
  const auto defined = [](const auto& self, std::string_view pattern, std::string_view text) -> bool {
    if (pattern.empty()) return text.empty();
    if (pattern[0] == '*')
      return self(self, pattern.substr(1), text) || (!text.empty() && self(self, pattern, text.substr(1)));
    return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
           self(self, pattern.substr(1), text.substr(1));
  };
  const auto words = [](std::string_view alphabet, size_t longest) {
    std::vector<std::string> result = {""};
    for (size_t i = 0; i < result.size() && result[i].size() < longest; ++i) {
      for (const char c : alphabet) result.push_back(result[i] + c);
    }
    return result;
  };
  for (const std::string& pattern : words("ab*?", 5)) {
    for (const std::string& text : words("ab", 6))
      ASSERT_EQ(matches(pattern, text), defined(defined, pattern, text)) << pattern << ' ' << text;
  }
}

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

using Names = std::set<std::string>;

class ChooseTargets : public ::testing::Test {
 protected:
  std::vector<std::string> chosen(const std::vector<std::string>& patterns) {
    std::vector<std::string> names;
    for (const LoraTarget& target : choose_targets(model(), patterns, 2, 4, tensor::DType::F16).targets)
      names.push_back(target.name);
    return names;
  }
  Names set_of(const std::vector<std::string>& patterns) {
    const auto names = chosen(patterns);
    return {names.begin(), names.end()};
  }
  /// The message of the error, empty without one.
  std::string refusal(const std::vector<std::string>& patterns) {
    try {
      (void)chosen(patterns);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return "";
  }
  const Model& model() {
    if (model_ == nullptr) {
      test::write_toy_model(folder_ / "toy.gguf", spec_);
      model_ = std::make_unique<Model>(folder_ / "toy.gguf");
    }
    return *model_;
  }
  test::ToySpec spec_;

 private:
  support::TempFolder folder_;
  std::unique_ptr<Model> model_;
};

TEST_F(ChooseTargets, AliasesAndPatternsNameTensors) {
  EXPECT_EQ(set_of({"q"}), (Names{"blk.0.attn_q.weight", "blk.1.attn_q.weight"}));
  EXPECT_EQ(set_of({"o"}), (Names{"blk.0.attn_output.weight", "blk.1.attn_output.weight"}));
  EXPECT_EQ(set_of({"k", "v"}), (Names{"blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.1.attn_k.weight",
                                       "blk.1.attn_v.weight"}));
  EXPECT_EQ(set_of({"ffn_gate", "blk.1.ffn_*.weight"}),
            (Names{"blk.0.ffn_gate.weight", "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight",
                   "blk.1.ffn_down.weight"}));
  EXPECT_EQ(set_of({"blk.0.ffn_up.weight"}), (Names{"blk.0.ffn_up.weight"}));
  // Twice named is once chosen, and the order is the file's whatever the patterns'.
  EXPECT_EQ(chosen({"v", "q", "v", "blk.?.attn_q.weight"}), chosen({"q", "v"}));
}

TEST_F(ChooseTargets, AutoIsEveryBlockMatrixAndNoNorm) {
  const auto all = chosen({"auto"});
  EXPECT_EQ(all.size(), 2U * 7U);
  EXPECT_EQ(all, chosen({"q", "k", "v", "o", "ffn_gate", "ffn_up", "ffn_down"}));
  for (const std::string& name : all) EXPECT_FALSE(contains(name, "norm")) << name;
}

TEST_F(ChooseTargets, FactorsLieBehindOneAnother) {
  const auto layout = choose_targets(model(), {{"auto"}}, 3, 4, tensor::DType::F16);
  int64_t offset = 0;
  for (const LoraTarget& target : layout.targets) {
    const gguf::Tensor& tensor = model().file().tensor(target.name);
    EXPECT_EQ(target.rank, 3);
    EXPECT_EQ(target.in, tensor.cols());
    EXPECT_EQ(target.out, tensor.rows());
    EXPECT_EQ(target.a_offset, offset);
    EXPECT_EQ(target.bt_offset, offset + 3 * target.in);
    offset += 3 * (target.in + target.out);
    EXPECT_EQ(layout.find(target.name), &target);
  }
  EXPECT_EQ(layout.size(), offset);
  EXPECT_EQ(layout.find("token_embd.weight"), nullptr);
}

TEST_F(ChooseTargets, PatternsWithoutATensorAreRefusedWithThoseThereAre) {
  for (const std::string pattern : {"attn_q", "blk.2.*", "Q", "", "blk.*.attn_norm.weight"}) {
    const std::string message = refusal({"q", pattern});
    EXPECT_TRUE(contains(message, "lora.targets: '" + pattern + "' matches no tensor"));
    EXPECT_TRUE(contains(message, "\n  blk.1.ffn_down.weight"));
  }
}

// phi3 holds queries, keys and values in one matrix, gate and up in another.
TEST_F(ChooseTargets, NamesOfPartsStandTogetherForTheMatrixThatHoldsThem) {
  spec_.architecture = "phi3";
  const Names attention = {"blk.0.attn_qkv.weight", "blk.1.attn_qkv.weight"};
  const Names up = {"blk.0.ffn_up.weight", "blk.1.ffn_up.weight"};
  EXPECT_EQ(set_of({"q", "k", "v"}), attention);
  EXPECT_EQ(set_of({"qkv"}), attention);
  EXPECT_EQ(set_of({"ffn_up", "ffn_gate"}), up);
  EXPECT_EQ(set_of({"ffn_up"}), up);  // its own name in the file
  EXPECT_EQ(set_of({"q", "k", "v", "o", "ffn_up", "ffn_down", "ffn_gate"}), set_of({"auto"}));
  for (const auto& part : std::vector<std::vector<std::string>>{{"q"}, {"q", "v"}, {"o", "k"}}) {
    EXPECT_TRUE(contains(refusal(part), "one matrix for k, q, v"));
    EXPECT_TRUE(contains(refusal(part), "blk.*.attn_qkv.weight"));
  }
  EXPECT_TRUE(contains(refusal({"ffn_gate"}), "one matrix for ffn_gate, ffn_up"));
}

TEST_F(ChooseTargets, AutoStandsAlone) {
  EXPECT_TRUE(contains(refusal({"auto", "q"}), "stands alone"));
  EXPECT_TRUE(contains(refusal({"q", "auto"}), "stands alone"));
}

TEST_F(ChooseTargets, TheEmbeddingAndTheHeadAreRefused) {
  for (const std::string pattern : {"embed", "token_embd.weight", "token_*"})
    EXPECT_TRUE(contains(refusal({pattern}), "names the input embedding"));
  for (const std::string pattern : {"output", "output.weight"}) {
    EXPECT_TRUE(contains(refusal({pattern}), "names the output head"));
    EXPECT_TRUE(contains(refusal({pattern}), "ties"));
  }
}

TEST_F(ChooseTargets, AnUntiedHeadIsRefusedAsSuch) {
  spec_.tied = false;
  EXPECT_TRUE(contains(refusal({"output"}), "this build cannot adapt"));
  EXPECT_EQ(chosen({"auto"}).size(), 14U);
}

}  // namespace
}  // namespace retro::model
