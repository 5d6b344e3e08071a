#include "data/records.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "gguf/reader.h"
#include "tests/support/cache.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_vocabulary.h"
#include "tests/text/gguf_vocabulary.h"

namespace retro::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kTurnStart = 1;
constexpr int32_t kTurnEnd = 2;

const std::string kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

text::Tokenizer toy_tokenizer(std::optional<bool> add_bos = {}, std::optional<bool> add_eos = {}) {
  const test::ToyVocabulary toy = test::toy_bpe(0);
  text::VocabularySource source;
  source.model = "gpt2";
  source.pre = "gpt-2";
  source.tokens.assign(toy.tokens.begin(), toy.tokens.end());
  source.types = toy.types;
  source.merges.assign(toy.merges.begin(), toy.merges.end());
  source.bos = source.eos = 0;
  source.eot = kTurnEnd;
  source.add_bos = add_bos;
  source.add_eos = add_eos;
  return text::Tokenizer(source);
}

text::ChatTemplate toy_template(const std::string& source = kChatml) {
  return text::ChatTemplate(source, {"", "<|im_end|>", {"<|im_end|>"}});
}

Json turn(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

std::string record(const std::vector<Json>& messages, const Json& more = Json::object()) {
  Json line = {{"messages", messages}};
  line.update(more);
  return line.dump() + "\n";
}

class RecordsTest : public testing::Test {
 protected:
  DataFile file(const std::string& text, const std::string& name = "data.jsonl") {
    write_file(folder_ / name, text);
    return DataFile(folder_ / name, std::nullopt);
  }
  Records read(const std::string& text, const RecordOptions& options = {.ctx = 4096}) {
    return file(text).tokenize(tokenizer_, &chat_, options);
  }
  std::string error_of(const std::string& text, const RecordOptions& options) {
    try {
      read(text, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      return error.what();
    }
    return {};
  }
  /// Trained runs of tokens as text, each in {…}; other text as it is. Control tokens by their spelling.
  std::string marked(const TrainingRecord& of) const {
    std::string text;
    bool inside = false;
    for (size_t t = 0; t < of.ids.size(); ++t) {
      const bool trained = of.trained[t] != 0;
      if (trained != inside) text += trained ? '{' : '}';
      inside = trained;
      text += tokenizer_.vocabulary().bytes(of.ids[t]);
    }
    return text + (inside ? "}" : "");
  }

  support::TempFolder folder_;
  text::Tokenizer tokenizer_ = toy_tokenizer();
  text::ChatTemplate chat_ = toy_template();
};

TEST_F(RecordsTest, EveryAssistantTurnIsTrainedWholeWithItsEndWhereTextsRepeat) {
  const Records records = read(record(
      {turn("user", "hi"), turn("assistant", "hi"), turn("user", "assistant"), turn("assistant", "hi")}));
  ASSERT_EQ(records.records.size(), 1U);
  EXPECT_EQ(marked(records.records[0]),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n{hi<|im_end|>}\n"
            "<|im_start|>user\nassistant<|im_end|>\n<|im_start|>assistant\n{hi<|im_end|>}\n");
  // Two letters and the end of the turn, twice.
  EXPECT_EQ(records.records[0].trained_tokens(), 6);
  EXPECT_EQ(records.records[0].line, 1U);
}

TEST_F(RecordsTest, ControlTokensInsideMessagesStayText) {
  const Records records =
      read(record({turn("user", "<|im_end|>\n<|im_start|>system"), turn("assistant", "a<|im_end|>b")}));
  const TrainingRecord& only = records.records[0];
  EXPECT_EQ(std::count(only.ids.begin(), only.ids.end(), kTurnEnd), 2);
  EXPECT_EQ(std::count(only.ids.begin(), only.ids.end(), kTurnStart), 2);
  // "a", nine tokens of ten characters ("en" is one), "b", the end.
  EXPECT_EQ(only.trained_tokens(), 12);
}

TEST_F(RecordsTest, RawTurnsKeepTheirControlTokens) {
  Json raw = turn("assistant", "a<|im_start|>b");
  raw["raw"] = true;
  const Records records = read(record({turn("user", "x"), raw}));
  EXPECT_EQ(marked(records.records[0]),
            "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n{a<|im_start|>b<|im_end|>}\n");
  EXPECT_EQ(records.records[0].trained_tokens(), 4);
}

TEST_F(RecordsTest, ATokenThatStraddlesTheEndOfASpanIsTrainedAndOneAtTheCutIsNotJoined) {
  // "e" of the answer and the template's "r" are one token; "h" before the cut and "e" behind it are not.
  chat_ = toy_template(
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}h{% else %}{{ m.content }}rx"
      "{% endif %}{% endfor %}");
  const Records records = read(record({turn("user", "b"), turn("assistant", "e")}));
  EXPECT_EQ(marked(records.records[0]), "bh{er}x");
  EXPECT_EQ(records.records[0].trained_tokens(), 1);
}

TEST_F(RecordsTest, OneBeginTokenWhereTheMetadataAsksForOne) {
  tokenizer_ = toy_tokenizer(true);
  EXPECT_EQ(read(record({turn("user", "x"), turn("assistant", "y")})).records[0].ids[0], 0);
  chat_ = toy_template("<|endoftext|>" + kChatml);
  const auto ids = read(record({turn("user", "x"), turn("assistant", "y")})).records[0].ids;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 0), 1);
  tokenizer_ = toy_tokenizer(false);
  EXPECT_EQ(read(record({turn("user", "x"), turn("assistant", "y")})).records[0].ids, ids);
}

TEST_F(RecordsTest, AnOverlongRecordIsAnErrorThatNamesItsLineAndLength) {
  const std::string text = record({turn("user", "x"), turn("assistant", "y")}) + "\n" +
                           record({turn("user", std::string(200, 'x')), turn("assistant", "ok")});
  const std::string error = error_of(text, {.ctx = 64});
  EXPECT_NE(error.find("data.jsonl:3: is "), std::string::npos) << error;
  EXPECT_NE(error.find("training.ctx is 64"), std::string::npos) << error;
  EXPECT_EQ(read(text, {.ctx = 64, .overlong = Overlong::drop}).dropped, 1U);
  EXPECT_EQ(read(text, {.ctx = 64, .overlong = Overlong::drop}).records.size(), 1U);
}

TEST_F(RecordsTest, ARecordThatTruncationLeavesWithoutATrainedTokenIsCountedAndLeftOut) {
  const std::string lost = record({turn("user", std::string(200, 'x')), turn("assistant", "ok")});
  const std::string cut = record({turn("user", "x"), turn("assistant", std::string(200, 'y'))});
  const RecordOptions options{.ctx = 64, .overlong = Overlong::truncate};
  const Records records = read(lost + cut, options);
  ASSERT_EQ(records.records.size(), 1U);
  EXPECT_EQ(records.read, 2U);
  EXPECT_EQ(records.truncated, 2U);
  EXPECT_EQ(records.empty_lines, std::vector<size_t>{1});
  EXPECT_EQ(records.records[0].ids.size(), 64U);
  EXPECT_GT(records.records[0].trained_tokens(), 0);
  const std::string error = error_of(lost, options);
  EXPECT_NE(error.find("data.jsonl: no record has a token to train"), std::string::npos) << error;
}

TEST_F(RecordsTest, MarkLineEndsAndBlankLinesChangeNoToken) {
  const std::vector<std::string> lines = {record({turn("user", "a"), turn("assistant", "b")}),
                                          record({turn("user", "c"), turn("assistant",
                                                                          "d\xE2\x80\xA8"
                                                                          "e")}),
                                          record({turn("user", "f"), turn("assistant", "g")})};
  const Records plain = read(lines[0] + lines[1] + lines[2]);
  std::string last = lines[2];
  last.pop_back();
  const auto crlf = [](std::string line) { return line.insert(line.size() - 1, "\r"); };
  const Records other = read("\xEF\xBB\xBF" + crlf(lines[0]) + "\r\n" + crlf(lines[1]) + last);
  ASSERT_EQ(plain.records.size(), 3U);
  ASSERT_EQ(other.records.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plain.records[i].ids, other.records[i].ids);
    EXPECT_EQ(plain.records[i].trained, other.records[i].trained);
  }
  EXPECT_NE(plain.fingerprint, other.fingerprint);
}

TEST_F(RecordsTest, ATurnThatTheTemplateShortensIsTold) {
  chat_ = toy_template(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n"
      "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  const Records records = read(record({turn("user", "a"), turn("assistant", "b")}) +
                               record({turn("user", "a"), turn("assistant", "<think>x</think>b")}));
  EXPECT_EQ(records.records.size(), 2U);
  EXPECT_EQ(records.partial_lines, std::vector<size_t>{2});
}

TEST_F(RecordsTest, TemplateVariablesReachTheTemplate) {
  chat_ = toy_template("{{ day }}" + kChatml);
  const Records records = read(record({turn("user", "a"), turn("assistant", "b")}),
                               {.ctx = 64, .template_variables = R"({"day": "x<|im_end|>"})"});
  EXPECT_EQ(marked(records.records[0]).find("x<|im_end|><|im_start|>user"), 0U);
  EXPECT_EQ(std::count(records.records[0].ids.begin(), records.records[0].ids.end(), kTurnEnd), 2);
}

TEST_F(RecordsTest, ATemplateThatRefusesARecordIsAnErrorOfItsLine) {
  chat_ = toy_template("{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" +
                       kChatml);
  const std::string good = record({turn("user", "a"), turn("assistant", "b")});
  const std::string error = error_of(
      good + record({turn("system", "s"), turn("user", "a"), turn("assistant", "b")}) + good, {.ctx = 64});
  EXPECT_NE(error.find("data.jsonl:2: "), std::string::npos) << error;
  EXPECT_NE(error.find("no system"), std::string::npos) << error;
}

TEST_F(RecordsTest, AllSpellingsOfACallGiveTheSameTokensAndTeachIt) {
  const Json tools = {{"tools", {{{"name", "find"}, {"parameters", Json::object()}}}}};
  chat_ = toy_template(read_file(test::cached("llama_models/templates/Qwen-Qwen2.5-7B-Instruct.jinja")));
  for (const std::string arguments : {R"({})", R"({"q":null})", R"({"q":"It's \"x\"\n<a>"})"}) {
    std::string text;
    for (const Json& spelled : {Json::parse(arguments), Json(arguments)}) {
      const Json calls = Json::array({{{"function", {{"name", "find"}, {"arguments", spelled}}}}});
      for (const Json& content : {Json(nullptr), Json("")}) {
        text += record(
            {turn("user", "a"), {{"role", "assistant"}, {"content", content}, {"tool_calls", calls}}}, tools);
      }
      text += record({turn("user", "a"), {{"role", "assistant"}, {"tool_calls", calls}}}, tools);
    }
    const Records records = read(text);
    ASSERT_EQ(records.records.size(), 6U);
    for (const TrainingRecord& one : records.records) {
      EXPECT_EQ(one.ids, records.records[0].ids);
      EXPECT_EQ(one.trained, records.records[0].trained);
    }
    const std::string shown = marked(records.records[0]);
    const std::string trained = shown.substr(shown.rfind("assistant\n{"));
    EXPECT_NE(trained.find("{\"name\": \"find\", \"arguments\": "), std::string::npos) << trained;
    EXPECT_EQ(trained.find("None"), std::string::npos);
    EXPECT_EQ(trained.find("null") != std::string::npos, arguments.find("null") != std::string::npos);
  }
}

TEST_F(RecordsTest, ARawTurnThatDoesNotGiveItsCallsIsRefusedWithItsLine) {
  const Json tools = {{"tools", {{{"name", "find"}}}}};
  const Json calls = Json::array({{{"name", "find"}, {"arguments", {{"q", 1}}}}});
  const auto raw = [&](const std::string& content) {
    return record({turn("user", "a"),
                   {{"role", "assistant"}, {"content", content}, {"raw", true}, {"tool_calls", calls}}},
                  tools);
  };
  const std::string good = raw("<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": 1}}\n</tool_call>");
  EXPECT_EQ(read(good).records.size(), 1U);
  for (const char* bad : {"<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": 2}}\n</tool_call>",
                          "<tool_call>\n{\"name\": \"find\"", "no call at all"}) {
    const std::string error = error_of(good + raw(bad), {.ctx = 4096});
    EXPECT_NE(error.find("data.jsonl:2: "), std::string::npos) << bad << error;
  }
}

TEST_F(RecordsTest, TextIsOneStreamCutIntoWindowsOfWhichOnlyTheFirstTokenIsNotTrained) {
  tokenizer_ = toy_tokenizer(true, true);
  const Records records = file("abcdefgh", "a.txt").tokenize(tokenizer_, nullptr, {.ctx = 4});
  // Begin, eight letters, end: windows of 4, 4 and 2.
  ASSERT_EQ(records.records.size(), 3U);
  EXPECT_EQ(records.records[0].ids[0], 0);
  EXPECT_EQ(records.records[2].ids.size(), 2U);
  EXPECT_EQ(records.records[2].ids[1], 0);
  for (const TrainingRecord& window : records.records) {
    EXPECT_EQ(window.trained_tokens(), static_cast<int64_t>(window.ids.size()) - 1);
    EXPECT_EQ(window.trained[0], 0);
  }
}

TEST_F(RecordsTest, ALastWindowOfOneTokenIsCountedAndLeftOut) {
  const Records records = file("abcde", "a.txt").tokenize(tokenizer_, nullptr, {.ctx = 4});
  EXPECT_EQ(records.records.size(), 1U);
  EXPECT_EQ(records.empty_lines, std::vector<size_t>{2});
  EXPECT_THROW(file("a", "b.txt").tokenize(tokenizer_, nullptr, {.ctx = 4}), Error);
  EXPECT_THROW(file(" \n", "c.txt"), Error);
}

TEST_F(RecordsTest, ControlTokensInATextStayText) {
  const Records records = file("a<|im_end|>", "a.txt").tokenize(tokenizer_, nullptr, {.ctx = 64});
  EXPECT_EQ(std::count(records.records[0].ids.begin(), records.records[0].ids.end(), kTurnEnd), 0);
}

TEST(RealModels, ACleanChatHasOneBeginTokenExactlyWhereTheModelWantsOne) {
  struct Case {
    const char* name;
    text::TemplateTokens tokens;
    bool begins;
  };
  const std::vector<Case> cases = {
      {"gemma3-270m-q4_k_m.gguf", {"<bos>", "<eos>", {"<eos>", "<end_of_turn>"}}, true},
      {"smollm2-135m-q4_1.gguf", {"<|im_start|>", "<|im_end|>", {"<|im_end|>", "<|endoftext|>"}}, false},
  };
  const support::TempFolder folder;
  write_file(folder / "a.jsonl", record({turn("user", "Hi there"), turn("assistant", "Hello.")}));
  for (const Case& c : cases) {
    const gguf::Reader model(test::cached(c.name));
    const std::string source(model.has("tokenizer.chat_template")
                                 ? std::string(model.get_string("tokenizer.chat_template"))
                                 : "{{ bos_token }}" + kChatml);
    const text::ChatTemplate chat(source, c.tokens);
    std::vector<int32_t> ids;
    for (const std::optional<bool> add_bos :
         {std::optional<bool>(), std::optional(true), std::optional(false)}) {
      text::VocabularySource vocabulary = text::vocabulary_of(model);
      if (add_bos && c.begins) vocabulary.add_bos = add_bos;
      const text::Tokenizer tokenizer(vocabulary);
      const Records records =
          DataFile(folder / "a.jsonl", std::nullopt).tokenize(tokenizer, &chat, {.ctx = 256});
      const std::vector<int32_t>& now = records.records[0].ids;
      if (c.begins) {
        EXPECT_EQ(now[0], *tokenizer.vocabulary().bos()) << c.name;
        EXPECT_EQ(std::count(now.begin(), now.end(), *tokenizer.vocabulary().bos()), 1) << c.name;
      }
      EXPECT_TRUE(ids.empty() || now == ids) << c.name;
      ids = now;
    }
  }
}

}  // namespace
}  // namespace retro::data
