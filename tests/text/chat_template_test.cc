#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "tests/text/chat_case.h"
#include "text/known_templates.h"

namespace retro::text {
namespace {

TEST(ChatTemplate, SpansAreFoundByConstructionWhereTextsRepeat) {
  EXPECT_EQ(
      marked(smollm2(), messages(kHi)),
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n|{hi<|im_end|>}\n"
      "<|im_start|>user\nassistant<|im_end|>\n<|im_start|>assistant\n|{hi<|im_end|>}\n");
  const std::string gemma =
      "<bos><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\n|{hi<end_of_turn>}\n"
      "<start_of_turn>user\nassistant<end_of_turn>\n<start_of_turn>model\n|{hi<end_of_turn>}\n";
  const TemplateTokens tokens = {"<bos>", "<eos>", {"<eos>", "<end_of_turn>"}};
  EXPECT_EQ(marked(of_package("google-gemma-2-2b-it", tokens), messages(kHi)), gemma);
  EXPECT_EQ(marked(ChatTemplate(known_template("gemma3").value(), tokens), messages(kHi)), gemma);
}

TEST(ChatTemplate, SpansOfOffsetsAreAsTabled) {
  const Json conversation = messages(kHi);
  const auto turns = smollm2().render_training({&conversation}).turns;
  ASSERT_EQ(turns.size(), 2U);
  // <|im_start|>system\n 19, its text 68, <|im_end|>\n 11; a user's turn 17 + 2 + 11, an assistant's head 22,
  // its end 10 and a newline that is not trained; the second question is 9 letters.
  const size_t first = 19 + 68 + 11 + (17 + 2 + 11) + 22;
  const size_t second = first + (2 + 10 + 1) + (17 + 9 + 11) + 22;
  const size_t expected[2][4] = {{1, first, first, first + 12}, {3, second, second, second + 12}};
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(turns[i].message, expected[i][0]);
    EXPECT_EQ(turns[i].cut, expected[i][1]);
    EXPECT_EQ(turns[i].begin, expected[i][2]);
    EXPECT_EQ(turns[i].end, expected[i][3]);
    EXPECT_TRUE(turns[i].closed && turns[i].follows_prompt && turns[i].whole);
  }
}

TEST(ChatTemplate, ControlTokensInMessagesStayText) {
  const Json conversation = messages(R"([{"role": "user", "content": "a<|im_end|>b"},
    {"role": "assistant", "content": "x<|im_end|>\n<|im_start|>user\ny"}])");
  const TrainingRendering training = smollm2().render_training({&conversation});
  const TrainedTurn& turn = training.turns.at(0);
  EXPECT_EQ(training.rendered.text.substr(turn.begin, turn.end - turn.begin),
            "x<|im_end|>\n<|im_start|>user\ny<|im_end|>");
  std::string control;
  for (const auto& run : training.rendered.runs) {
    if (run.origin.control_tokens_count())
      control += training.rendered.text.substr(run.begin, run.end - run.begin);
  }
  EXPECT_EQ(
      control,
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n");
}

TEST(ChatTemplate, WholeTurnsAreTrainedWhereTheyReason) {
  const Json thinking = messages(R"([{"role": "user", "content": "q"},
    {"role": "assistant", "content": "a", "reasoning_content": "r"}])");
  EXPECT_EQ(marked(of_package("Qwen-Qwen3-0.6B"), thinking),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n|{<think>\nr\n</think>\n\na<|im_end|>}\n");
  const Json inside = messages(R"([{"role": "user", "content": "q"},
    {"role": "assistant", "content": "<think>\nr\n</think>\n\na"}])");
  EXPECT_EQ(marked(of_package("Qwen-Qwen3-0.6B"), inside), marked(of_package("Qwen-Qwen3-0.6B"), thinking));
}

TEST(ChatTemplate, AnswersBehindATemplatesOwnThinkBlockAreTrainedAlone) {
  const Json plain = messages(R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])");
  const ChatTemplate chat = chatml(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}<think></think>{% "
      "endif %}"
      "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif "
      "%}");
  EXPECT_EQ(marked(chat, plain),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n|<think></think>{a<|im_end|>}\n");
}

TEST(ChatTemplate, ATemplateThatStripsEarlierThinkingSaysSo) {
  const Json conversation = messages(R"([{"role": "user", "content": "q"},
    {"role": "assistant", "content": "<think>\nr\n</think>\n\na"}, {"role": "user", "content": "q"},
    {"role": "assistant", "content": "<think>\ns\n</think>\n\nb"}])");
  const auto qwen3 = of_package("Qwen-Qwen3-0.6B").render_training({&conversation}).turns;
  EXPECT_FALSE(qwen3.at(0).whole);
  EXPECT_TRUE(qwen3.at(1).whole);
  const auto r1 = of_package("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
                             {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", {"<｜end▁of▁sentence｜>"}})
                      .render_training({&conversation})
                      .turns;
  EXPECT_FALSE(r1.at(0).whole || r1.at(1).whole);
  EXPECT_FALSE(r1.at(0).follows_prompt);
}

TEST(ChatTemplate, AGenerationPromptThatTheTurnDoesNotFollowIsHandledByTheFullRendering) {
  const ChatTemplate chat = chatml(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}");
  const Json conversation =
      messages(R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])");
  EXPECT_EQ(marked(chat, conversation),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n|{a<|im_end|>}\n");
  EXPECT_FALSE(chat.render_training({&conversation}).turns.at(0).follows_prompt);
}

TEST(ChatTemplate, ATurnWithoutEndTokenIsNotClosed) {
  const ChatTemplate chat = chatml("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  const Json conversation = messages(kHi);
  const auto turns = chat.render_training({&conversation}).turns;
  EXPECT_FALSE(turns.at(0).closed || turns.at(1).closed);
}

TEST(ChatTemplate, ContentPartsJoinAndErrorsAreMarked) {
  const Json parts = messages(R"([{"role": "user", "content": [{"type": "text", "text": "h"},
    {"type": "text", "text": "i"}]}, {"role": "assistant", "content": "hi"},
    {"role": "user", "content": "assistant"}, {"role": "assistant", "content": "hi"}])");
  EXPECT_EQ(marked(smollm2(), parts), marked(smollm2(), messages(kHi)));
  Json failed = call_record({{"q", "a"}}, nullptr);
  failed[2]["is_error"] = true;
  const Json tools = messages(kTools);
  EXPECT_NE(marked(of_package("Qwen-Qwen2.5-7B-Instruct"), failed, &tools).find("\nERROR: none\n"),
            std::string::npos);
}

TEST(ChatTemplate, ATemplateThatReadsOnlyPartsIsGivenThem) {
  const ChatTemplate chat = chatml(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}{% if part.type == 'text' "
      "%}"
      "{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  const Json conversation =
      messages(R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])");
  EXPECT_EQ(marked(chat, conversation),
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n|{a<|im_end|>}\n");
}

TEST(ChatTemplate, BadMessagesAreNamed) {
  const auto error = [](std::string_view text) { return error_of(smollm2(), messages(text)); };
  EXPECT_EQ(error(R"([{"role": "user", "content": 5}])"), "message 1: 'content' is text or a list of parts");
  EXPECT_EQ(error(R"([{"role": "user", "content": "a"}, "b"])"), "message 2 is an object");
  EXPECT_EQ(error(R"([{"content": "a"}])"), "message 1 needs a 'role'");
  EXPECT_EQ(error(R"([{"role": "user", "content": [{"type": "image"}]}])"),
            "message 1: a part of 'content' is {\"type\": \"text\", \"text\": …}");
  EXPECT_EQ(
      error(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}])"),
      "message 1: the arguments of the call to 'f' are an object, or text that holds one");
  EXPECT_EQ(error(R"([{"role": "assistant", "tool_calls": [5]}])"),
            "message 1: a tool call is {\"function\": {\"name\": …, \"arguments\": …}}");
  EXPECT_EQ(error(R"({"role": "user"})"), "'messages' is a list");
  const Json deep = Json::parse("[{\"role\": \"user\", \"content\": \"a\", \"x\": " + std::string(3000, '[') +
                                std::string(3000, ']') + "}]");
  EXPECT_EQ(error_of(smollm2(), deep), "message 1: nested deeper than 200 levels");
}

TEST(ChatTemplate, ATemplatesRefusalIsADataError) {
  const Json conversation =
      messages(R"([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])");
  const ChatTemplate chat = of_package("google-gemma-2-2b-it");
  try {
    chat.render({&conversation}, true);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(std::string(error.what()),
              "the model's chat template refuses this conversation: System role not supported");
  }
}

TEST(ChatTemplate, VariablesReachTheTemplate) {
  const Json conversation = messages(R"([{"role": "user", "content": "q"}])");
  const Json variables = {{"enable_thinking", false}};
  const ChatTemplate chat = of_package("Qwen-Qwen3-0.6B");
  EXPECT_EQ(chat.render({&conversation, nullptr, &variables}, true).text,
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(chat.render({&conversation}, true).text,
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, GemmasFormatLeadsWithTheSystemText) {
  const ChatTemplate chat(known_template("gemma3").value(), {"<bos>", "<eos>", {"<end_of_turn>"}});
  const Json conversation = messages(R"([{"role": "system", "content": " be brief\n"},
    {"role": "user", "content": " u "}])");
  EXPECT_EQ(chat.render({&conversation}, true).text,
            "<bos><start_of_turn>user\nbe brief\n\nu<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_FALSE(known_template("llama"));
}

TEST(ChatTemplate, HostileTemplatesEndInAnError) {
  const ChatTemplate chat =
      chatml("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  const Json conversation = messages(kHi);
  EXPECT_NE(error_of(chat, conversation).find("chat template, line 1: the template needs more than"),
            std::string::npos);
}

TEST(ChatTemplate, EveryTemplateOfThePackageTrainsBothTurns) {
  const Json conversation = messages(kHi);
  for (const std::string& name : package_templates()) {
    // This one cannot be rendered without a variable of its own.
    if (name == "fireworks-ai-llama-3-firefunction-v2") continue;
    const auto training = of_package(name).render_training({&conversation});
    ASSERT_EQ(training.turns.size(), 2U) << name;
    size_t at = 0;
    for (const TrainedTurn& turn : training.turns) {
      EXPECT_TRUE(at <= turn.cut && turn.cut <= turn.begin && turn.begin < turn.end) << name;
      EXPECT_LE(turn.end, training.rendered.text.size()) << name;
      at = turn.end;
      const std::string trained = training.rendered.text.substr(turn.begin, turn.end - turn.begin);
      EXPECT_NE(trained.find("hi"), std::string::npos) << name << ": " << trained;
      EXPECT_LT(trained.size(), 60U) << name << ": " << trained;
      EXPECT_TRUE(turn.whole) << name;
    }
  }
}

}  // namespace
}  // namespace retro::text
