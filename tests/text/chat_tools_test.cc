// Tool calls and their results, as templates write them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/text/chat_case.h"
#include "text/chat_template.h"

namespace retro::text {
namespace {

TEST(ChatTools, RawTurnsKeepTheirControlTokens) {
  const Json conversation = messages(R"([{"role": "user", "content": "q"},
    {"role": "assistant", "content": "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>",
     "raw": true, "tool_calls": [{"function": {"name": "f", "arguments": "{\"x\":1}"}}]}])");
  const TrainingRendering training = smollm2().render_training({&conversation});
  const TrainedTurn& turn = training.turns.at(0);
  EXPECT_EQ(training.rendered.text.substr(turn.begin, turn.end - turn.begin),
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call><|im_end|>");
  for (const auto& run : training.rendered.runs) {
    EXPECT_TRUE(run.origin.message != 1 || run.origin.control_tokens_count());
  }
  Json other = conversation;
  other[1]["tool_calls"][0]["function"]["arguments"] = {{"x", 2}};
  EXPECT_EQ(error_of(smollm2(), other),
            "message 2: the turn as written gives 1 tool call other than the 1 in 'tool_calls'");
}

TEST(ChatTools, ArgumentsAsTextOrObjectAndMissingContentRenderAlike) {
  const Json tools = messages(kTools);
  const Json null;
  const Json empty = "";
  const std::vector<std::string> arguments = {"{}", R"({"q": null})", R"({"q": "It's \"x\"\n<a>"})"};
  const std::vector<std::string> written = {"{}", R"({"q": null})", R"({"q": "It's \"x\"\n<a>"})"};
  for (const std::string name : {"Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B",
                                 "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "ibm-granite-granite-4.0"}) {
    const ChatTemplate chat = of_package(name, {"<s>", "</s>", {"<|im_end|>", "<|end_of_text|>"}});
    EXPECT_TRUE(chat.declares_tools()) << name;
    EXPECT_TRUE(chat.writes_tool_calls()) << name;
    for (size_t i = 0; i < arguments.size(); ++i) {
      std::vector<std::string> seen;
      for (const Json& spelled : {Json(arguments[i]), Json::parse(arguments[i])}) {
        for (const Json* content : {static_cast<const Json*>(nullptr), &null, &empty}) {
          seen.push_back(marked(chat, call_record(spelled, content), &tools));
        }
      }
      for (const std::string& each : seen) EXPECT_EQ(each, seen[0]) << name;
      EXPECT_NE(seen[0].find("\"arguments\": " + written[i]), std::string::npos) << name << "\n" << seen[0];
      EXPECT_EQ(seen[0].find("None"), std::string::npos) << name << "\n" << seen[0];
    }
  }
}

TEST(ChatTools, AStructuredCallIsTrainedFromItsGenerationPromptToItsEnd) {
  const Json tools = messages(kTools);
  const std::string text =
      marked(of_package("Qwen-Qwen2.5-7B-Instruct"), call_record({{"q", "a"}}, nullptr), &tools);
  EXPECT_EQ(text.substr(text.find("<|im_start|>user")),
            "<|im_start|>user\nfind it<|im_end|>\n<|im_start|>assistant\n|{<tool_call>\n"
            "{\"name\": \"find\", \"arguments\": {\"q\": \"a\"}}\n</tool_call><|im_end|>}\n"
            "<|im_start|>user\n<tool_response>\nnone\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n|{It is not there.<|im_end|>}\n");
}

TEST(ChatTools, ATemplateWithoutToolsGetsThemAsText) {
  const Json tools = messages(kTools);
  const ChatTemplate chat = smollm2();
  EXPECT_FALSE(chat.declares_tools());
  EXPECT_TRUE(chat.writes_tool_calls());
  const std::string catalogue =
      "# Tools\n\nThese tools can be called; each line declares one in JSON:\n<tools>\n{\"type\": "
      "\"function\", "
      "\"function\": {\"name\": \"find\", \"description\": \"Finds it.\", \"parameters\": {\"type\": "
      "\"object\", "
      "\"properties\": {\"q\": {\"type\": \"string\"}}}}}\n</tools>\n\nTo call a tool, write its name and "
      "its arguments "
      "in JSON:\n<tool_call>\n{\"name\": \"...\", \"arguments\": {...}}\n</tool_call>";
  const std::string talk =
      "<|im_start|>assistant\n|{<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": "
      "\"a\"}}\n</tool_call>"
      "<|im_end|>}\n<|im_start|>user\n<tool_response>\nnone\n</tool_response><|im_end|>\n"
      "<|im_start|>assistant\n|{It is not there.<|im_end|>}\n";
  Json record = call_record({{"q", "a"}}, nullptr);
  EXPECT_EQ(marked(chat, record, &tools),
            "<|im_start|>system\n" + catalogue + "<|im_end|>\n<|im_start|>user\nfind it<|im_end|>\n" + talk);
  record.insert(record.begin(), Json{{"role", "system"}, {"content", "Be brief."}});
  EXPECT_EQ(marked(chat, record, &tools), "<|im_start|>system\nBe brief.\n\n" + catalogue +
                                              "<|im_end|>\n<|im_start|>user\nfind it<|im_end|>\n" + talk);
  // Gemma's own template refuses system messages.
  record.erase(record.begin());
  const TemplateTokens tokens = {"<bos>", "<eos>", {"<end_of_turn>"}};
  EXPECT_EQ(marked(of_package("google-gemma-2-2b-it", tokens), record, &tools)
                .find("<bos><start_of_turn>user\n" + catalogue + "\n\nfind it<end_of_turn>\n"),
            0U);
}

TEST(ChatTools, ResultsInARowAreOneTurn) {
  const Json tools = messages(kTools);
  Json record =
      messages(R"([{"role": "user", "content": "find both"}, {"role": "assistant", "content": "Yes.",
    "tool_calls": [{"name": "find", "arguments": {"q": 1}}, {"name": "find", "arguments": "{\"q\": 2}"}]},
    {"role": "tool", "content": "one"}, {"role": "tool", "content": "gone", "is_error": true}])");
  const std::string text = marked(smollm2(), record, &tools);
  EXPECT_EQ(text.substr(text.find("<|im_start|>assistant")),
            "<|im_start|>assistant\n|{Yes.\n<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": "
            "1}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": 2}}\n</tool_call><|im_end|>}\n"
            "<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\nERROR: gone\n"
            "</tool_response><|im_end|>\n");
}

TEST(ChatTools, ACallThatTheTemplateDropsIsRefused) {
  const Json tools = messages(kTools);
  const ChatTemplate chat = chatml(
      "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role "
      "}}\n"
      "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif "
      "%}");
  EXPECT_TRUE(chat.declares_tools());
  EXPECT_FALSE(chat.writes_tool_calls());
  EXPECT_EQ(
      error_of(chat, call_record({{"q", "a"}}, nullptr), &tools),
      "message 2: the model's chat template does not write its tool calls; write the turn as the model shall "
      "generate it and mark it \"raw\": true");
}

TEST(ChatTools, ACallThatWouldNotParseBackIsRefused) {
  // This template puts back newlines that JSON needs escaped.
  const ChatTemplate chat = chatml(
      "{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in "
      "m.tool_calls or [] %}"
      "<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson | "
      "replace('\\\\n', '\\n') }}}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  EXPECT_EQ(error_of(chat, call_record({{"q", "plain"}}, nullptr)), "");
  EXPECT_EQ(error_of(chat, call_record({{"q", "two\nlines"}}, nullptr)),
            "message 2: its tool calls do not parse back: the text between <tool_call> and </tool_call> is "
            "no JSON");
}

TEST(ChatTools, ACallWhoseBeginIsUnknownIsRefused) {
  // The generation prompt opens a thought that the template leaves out of finished turns.
  const Json tools = messages(kTools);
  const ChatTemplate chat = of_package("Qwen-QwQ-32B");
  EXPECT_TRUE(chat.writes_tool_calls());
  EXPECT_NE(error_of(chat, call_record({{"q", "a"}}, nullptr), &tools)
                .find("message 2: the model's chat template does not write this turn behind its own "
                      "generation prompt"),
            std::string::npos);
}

TEST(ChatTools, NoTemplateOfThePackageTellsSpellingsOfACallApart) {
  const Json tools = messages(kTools);
  const Json null;
  const Json empty = "";
  size_t written = 0;
  for (const std::string& name : package_templates()) {
    const ChatTemplate chat = of_package(name);
    for (const std::string text : {"{}", R"({"q": null})", R"({"q": "It's \"x\"\n<a>"})"}) {
      std::set<std::string> outcomes;
      for (const Json& spelled : {Json(text), Json::parse(text)}) {
        for (const Json* content : {static_cast<const Json*>(nullptr), &null, &empty}) {
          try {
            outcomes.insert(marked(chat, call_record(spelled, content), &tools));
          } catch (const Error& error) {
            outcomes.insert(error.what());
          }
        }
      }
      EXPECT_EQ(outcomes.size(), 1U) << name;
      EXPECT_EQ(outcomes.begin()->find("None"), std::string::npos) << name << "\n" << *outcomes.begin();
      if (outcomes.begin()->find("|{") != std::string::npos) ++written;
    }
  }
  EXPECT_GE(written, 33U);
}

}  // namespace
}  // namespace retro::text
