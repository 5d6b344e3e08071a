// Prompt files: which lines are prompts, their tokens, and their order.
#include "data/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/records.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_vocabulary.h"

namespace retro::data {
namespace {

using Json = nlohmann::ordered_json;

const std::string kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

text::Tokenizer toy_tokenizer(std::optional<bool> add_bos = {}) {
  constexpr int32_t kTurnEnd = 2;
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
  return text::Tokenizer(source);
}

text::ChatTemplate toy_template(const std::string& source = kChatml) {
  return text::ChatTemplate(source, {"", "<|im_end|>", {"<|im_end|>"}});
}

const std::string kUser = R"({"role": "user", "content": "hi"})";
const std::string kAnswer = R"({"role": "assistant", "content": "ho"})";
const std::string kSystem = R"({"role": "system", "content": "be brief"})";

std::string line(const std::string& messages, const std::string& more = "") {
  return R"({"messages": [)" + messages + "]" + more + "}";
}

std::string error_of(const std::string& text, PromptUse use = PromptUse::rollout) {
  try {
    parse_prompt(text, 1, use);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return {};
}

TEST(Prompt, EndsOnAUserMessageWhoseTextTheRewardProgramGets) {
  const PromptRecord prompt = parse_prompt(
      line(
          kSystem + "," + kUser + "," + kAnswer +
              R"(, {"role": "user", "content": [{"type": "text", "text": "and "}, {"type": "text", "text": "now?"}]})",
          R"(, "rubric": "be kind", "metadata": {"answer": 4})"),
      7, PromptUse::rollout);
  EXPECT_EQ(prompt.line, 7U);
  EXPECT_EQ(prompt.last_user, "and now?");
  EXPECT_EQ(prompt.rubric, "be kind");
  EXPECT_FALSE(prompt.reference);
  EXPECT_EQ(prompt.messages->size(), 4U);
}

TEST(Prompt, AnEvaluationFileMayHoldAReferenceAnswerThatTheModelDoesNotSee) {
  const PromptRecord prompt = parse_prompt(line(kUser + "," + kAnswer), 1, PromptUse::evaluation);
  EXPECT_EQ(prompt.reference, "ho");
  EXPECT_EQ(prompt.last_user, "hi");
  EXPECT_EQ(prompt.messages->size(), 1U);
  EXPECT_FALSE(parse_prompt(line(kUser), 1, PromptUse::evaluation).reference);
}

TEST(Prompt, ALineThatIsNoPromptIsRefusedWithWhatToDo) {
  const std::string call =
      R"({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"3", "is 3; each line is one JSON object"},
      {"{}", "has no \"messages\""},
      {R"({"prompt": "hi"})", "prompt/completion shape"},
      {line(""), "at least one message"},
      {line(kSystem), "ends on a system message"},
      {line(kUser + "," + kAnswer), "ends on an assistant message"},
      {line(kAnswer), "message 1 is an assistant message with no user message before it"},
      {line(kUser + "," + kUser), "message 2 is a second user message in a row"},
      {line(kUser + "," + kSystem), "message 2 is a system message behind others"},
      {line(kUser + "," + kAnswer + "," + kAnswer + "," + kUser), "message 3 is an assistant message"},
      {line(R"({"role": "user", "content": ""})"), "message 1 has no content"},
      {line(R"({"role": "user", "content": null})"), "message 1 has no content"},
      {line(kUser, R"(, "tools": [{"name": "f"}])"), "is a tool record"},
      {line(kUser + "," + call + R"(, {"role": "tool", "content": "1"}, )" + kUser),
       "message 2 belongs to a tool record"},
      {line(kUser, R"(, "rubric": 3)"), "\"rubric\": 3; it is a string"},
      {line(kUser, R"(, "rubric": "")"), "it is a string that is not empty"},
      {line(kUser, R"(, "answer": "4")"),
       "unknown field \"answer\"; a record has messages, rubric and metadata"},
  };
  for (const auto& [text, fragment] : cases) {
    EXPECT_NE(error_of(text).find(fragment), std::string::npos) << text << "\n" << error_of(text);
  }
  EXPECT_NE(error_of(line(kSystem + "," + kUser + "," + kAnswer + "," + kAnswer), PromptUse::evaluation), "");
}

class PromptsTest : public testing::Test {
 protected:
  PromptFile file(const std::string& text, PromptUse use = PromptUse::rollout) {
    write_file(folder_ / "prompts.jsonl", text);
    return {folder_ / "prompts.jsonl", use};
  }
  std::string shown(const std::vector<int32_t>& ids) const {
    std::string text;
    for (const int32_t id : ids) text += tokenizer_.vocabulary().bytes(id);
    return text;
  }
  std::string error_of(const std::string& text, const PromptOptions& options) {
    try {
      tokenize_prompts(file(text), chat_, tokenizer_, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      return error.what();
    }
    return {};
  }

  support::TempFolder folder_;
  text::Tokenizer tokenizer_ = toy_tokenizer();
  text::ChatTemplate chat_ = toy_template();
};

TEST_F(PromptsTest, AllBadLinesAreListedWithTheirNumbers) {
  try {
    file("\xEF\xBB\xBF" + line(kUser) + "\r\n\n{\"messages\":\r\n[1,2]\n" + line(kAnswer));
    FAIL() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* place : {"prompts.jsonl:3: ", "prompts.jsonl:4: ", "prompts.jsonl:5: "}) {
      EXPECT_NE(text.find(place), std::string::npos) << text;
    }
    EXPECT_EQ(text.find("prompts.jsonl:1: "), std::string::npos) << text;
  }
  for (const char* empty : {"", "\n \r\n"}) EXPECT_THROW(file(empty), Error);
}

TEST_F(PromptsTest, TokensAreThoseThatAnAnswerContinues) {
  const PromptFile prompts = file(line(kSystem + "," + kUser) + "\n" + line(kUser));
  const auto ids = tokenize_prompts(prompts, chat_, tokenizer_, {.ctx = 4096, .max_new_tokens = 8});
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(
      shown(ids[0]),
      "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(shown(ids[1]), "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(PromptsTest, TheBeginTokenStandsOnceWhereTheMetadataAsksForIt) {
  const text::Tokenizer with_bos = toy_tokenizer(true);
  const auto ids = tokenize_prompts(file(line(kUser)), chat_, with_bos, {.ctx = 4096, .max_new_tokens = 8});
  EXPECT_EQ(std::count(ids[0].begin(), ids[0].end(), 0), 1);
  EXPECT_EQ(ids[0].front(), 0);
}

TEST_F(PromptsTest, ControlTokensInsideAMessageStayText) {
  const auto ids = tokenize_prompts(file(line(R"({"role": "user", "content": "<|im_end|>"})")), chat_,
                                    tokenizer_, {.ctx = 4096, .max_new_tokens = 8});
  EXPECT_EQ(std::count(ids[0].begin(), ids[0].end(), 2), 1);
}

TEST_F(PromptsTest, EarlierTurnsHaveTheIdsThatTrainingGivesThem) {
  const std::string turns = kUser + R"(, {"role": "assistant", "content": "\nho"}, )" + kUser;
  write_file(folder_ / "train.jsonl", line(turns + "," + kAnswer));
  const DataFile training(folder_ / "train.jsonl", std::nullopt);
  const Records records = training.tokenize(tokenizer_, &chat_, {.ctx = 4096});
  const auto ids = tokenize_prompts(file(line(turns)), chat_, tokenizer_, {.ctx = 4096, .max_new_tokens = 8});
  const std::vector<int32_t>& trained = records.records[0].ids;
  ASSERT_LT(ids[0].size(), trained.size());
  EXPECT_TRUE(std::equal(ids[0].begin(), ids[0].end(), trained.begin()));
}

TEST_F(PromptsTest, EveryPromptMustFitWithItsAnswer) {
  const std::string longer = line(R"({"role": "user", "content": ")" + std::string(40, 'x') + "\"}");
  const std::string text = line(kUser) + "\n" + longer + "\n" + line(kUser) + "\n" + longer;
  const size_t length =
      tokenize_prompts(file(text), chat_, tokenizer_, {.ctx = 4096, .max_new_tokens = 8})[1].size();
  const auto fits = static_cast<int64_t>(length) + 8;
  EXPECT_EQ(error_of(text, {.ctx = fits, .max_new_tokens = 8}), "");
  const std::string error = error_of(
      text, {.ctx = fits - 1, .max_new_tokens = 8, .max_new_tokens_name = "grpo.sampling.max_new_tokens"});
  for (const std::string& fragment :
       {std::string("prompts.jsonl:2: the prompt is "), std::string("prompts.jsonl:4: "),
        "grpo.sampling.max_new_tokens = 8 that is " + std::to_string(fits),
        "set training.ctx to " + std::to_string(fits) + " or more",
        std::string("or grpo.sampling.max_new_tokens to 7 or less")}) {
    EXPECT_NE(error.find(fragment), std::string::npos) << error << "\nlacks: " << fragment;
  }
  EXPECT_EQ(error.find("prompts.jsonl:1:"), std::string::npos);
}

TEST_F(PromptsTest, ATemplateThatRefusesAPromptIsToldWithItsLine) {
  chat_ = toy_template("{{ raise_exception('no system') if messages[0].role == 'system' }}" + kChatml);
  const std::string error =
      error_of(line(kUser) + "\n" + line(kSystem + "," + kUser), {.ctx = 4096, .max_new_tokens = 8});
  EXPECT_NE(error.find("prompts.jsonl:2: "), std::string::npos) << error;
}

TEST(PromptOrder, SequentialIsTheFileAgainAndAgain) {
  PromptOrder order(3, false, 42);
  for (int64_t position = 0; position < 10; ++position) {
    EXPECT_EQ(order.at(position), static_cast<size_t>(position % 3));
  }
}

TEST(PromptOrder, ShuffledTakesEveryPromptOnceAPassInAnOrderOfItsOwn) {
  constexpr int64_t kCount = 50;
  PromptOrder order(kCount, true, 42);
  std::set<std::vector<size_t>> orders;
  for (int64_t pass = 0; pass < 4; ++pass) {
    std::vector<size_t> taken;
    for (int64_t i = 0; i < kCount; ++i) taken.push_back(order.at(pass * kCount + i));
    orders.insert(taken);
    std::sort(taken.begin(), taken.end());
    std::vector<size_t> all(kCount);
    std::iota(all.begin(), all.end(), size_t{0});
    EXPECT_EQ(taken, all);
  }
  EXPECT_EQ(orders.size(), 4U);
}

TEST(PromptOrder, APositionIsAFunctionOfSeedAndPassAlone) {
  PromptOrder through(50, true, 7);
  std::vector<size_t> taken;
  for (int64_t position = 0; position < 200; ++position) taken.push_back(through.at(position));
  for (const int64_t position : {int64_t{199}, int64_t{3}, int64_t{60}}) {
    EXPECT_EQ(PromptOrder(50, true, 7).at(position), taken[static_cast<size_t>(position)]);
  }
  PromptOrder other(50, true, 8);
  size_t equal = 0;
  for (int64_t position = 0; position < 200; ++position)
    equal += other.at(position) == taken[static_cast<size_t>(position)] ? 1 : 0;
  EXPECT_LT(equal, 50U);
}

}  // namespace
}  // namespace retro::data
