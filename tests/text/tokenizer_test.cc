#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <sstream>

#include "base/files.h"
#include "tests/support/cache.h"
#include "tests/text/gguf_vocabulary.h"

namespace retro::text {
namespace {

/// A vocabulary of the llama.cpp package whose rules are ours, and the pre-tokenizer to read it with: some
/// name one of their own that has the same patterns.
struct Reference {
  const char* name;
  const char* pre;
};

constexpr Reference kReferences[] = {
    {"gpt-2", "gpt-2"},      {"mpt", "gpt-2"},        {"llama-bpe", "llama-bpe"},
    {"qwen2", "qwen2"},      {"starcoder", "smollm"}, {"refact", "smollm"},
    {"command-r", "smollm"}, {"llama-spm", ""},       {"phi-3", ""},
};

std::vector<std::string> reference_texts(const std::string& file) {
  const std::string all = read_file(file);
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (size_t at = 0;;) {
    const size_t end = all.find(separator, at);
    if (end == std::string::npos) break;
    texts.push_back(all.substr(at, end - at));
    at = end + separator.size();
  }
  return texts;
}

std::vector<std::vector<TokenId>> reference_ids(const std::string& file) {
  std::istringstream lines(read_file(file));
  std::vector<std::vector<TokenId>> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    all.emplace_back();
    for (TokenId id; numbers >> id;) all.back().push_back(id);
  }
  return all;
}

class LlamaCppReference : public testing::TestWithParam<Reference> {};

TEST_P(LlamaCppReference, IdsAreTheSame) {
  const auto stem = test::cached("llama_models").string() + "/ggml-vocab-" + GetParam().name + ".gguf";
  const gguf::Reader file(stem);
  auto source = vocabulary_of(file);
  source.pre = GetParam().pre;
  const Tokenizer tokenizer(source);
  const auto texts = reference_texts(stem + ".inp");
  const auto ids = reference_ids(stem + ".out");
  ASSERT_GE(texts.size(), 40U);
  ASSERT_EQ(texts.size(), ids.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], false), ids[i]) << "text " << i << ": " << texts[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, LlamaCppReference, testing::ValuesIn(kReferences),
                         [](const auto& parameter) {
                           std::string name = parameter.param.name;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace retro::text
