#include "data/chat_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace retro::data {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& text) {
  try {
    parse_chat_record(text, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return {};
}

Json normal(const std::string& text) {
  return *parse_chat_record(text, 1).messages;
}

std::string messages(const std::string& list, const std::string& more = "") {
  return R"({"messages": [)" + list + "]" + more + "}";
}

const std::string kUser = R"({"role": "user", "content": "hi"})";
const std::string kAnswer = R"({"role": "assistant", "content": "ho"})";
const std::string kTools =
    R"(, "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}, {"name": "look"}])";
const std::string kCall =
    R"({"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]})";
const std::string kResult = R"({"role": "tool", "content": "2"})";

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

struct BadCase {
  std::string record;
  std::string fragment;
};

TEST(ChatRecord, ABadRecordIsRefusedWithWhatIsWrongAndHowToMendIt) {
  const std::string system = R"({"role": "system", "content": "s"})";
  const std::vector<BadCase> cases = {
      {"{}", "has no \"messages\""},
      {"3", "is 3; each line is one JSON object"},
      {R"({"messages": []})", "at least one message"},
      {R"({"messages": {}})", "at least one message"},
      {R"({"messages": [1]})", "message 1 is 1; it is an object"},
      {messages(kUser + "," + kAnswer, R"(, "id": 3)"), "unknown field \"id\""},
      {R"({"messages": [], "messages": []})", "the key 'messages' stands twice"},
      {R"({"conversations": [{"from": "human", "value": "x"}]})", "ShareGPT"},
      {R"({"conversations": []})", "`retrograd convert IN OUT`"},
      {R"({"instruction": "x", "output": "y"})", "Alpaca"},
      {R"({"prompt": "x", "completion": "y"})", "prompt/completion"},
      {R"({"chosen": [], "rejected": []})", "preference pair"},
      {messages(R"({"content": "x"})"), "message 1 has no \"role\""},
      {messages(R"({"role": "developer", "content": "x"})"), "(write \"system\")"},
      {messages(R"({"role": 7, "content": "x"})"), "has the role 7"},
      {messages(R"({"role": "user"})"), "message 1 has no content"},
      {messages(R"({"role": "user", "content": ""})"), "has no content"},
      {messages(R"({"role": "user", "content": []})"), "has no content"},
      {messages(R"({"role": "user", "content": 5})"), "has \"content\": 5; it is a string"},
      {messages(R"({"role": "user", "content": [{"type": "image_url", "image_url": {}}]})"),
       "only parts {\"type\": \"text\""},
      {messages(R"({"role": "user", "content": [{"type": "text"}]})"), "only parts"},
      {messages(R"({"role": "user", "content": "x", "weight": 0})"), "unknown field \"weight\""},
      {messages(R"({"role": "user", "content": "x", "raw": true})"), "only a message of role assistant has"},
      {messages(kUser + R"(, {"role": "assistant", "content": "x", "raw": 1})"), "it is true or false"},
      {messages(R"({"role": "user", "content": "x", "name": 4})"), "\"name\": 4; it is a string"},
      {messages(kUser), "has no assistant message"},
      {messages(kAnswer), "message 1 is an assistant message with no user message before it"},
      {messages(system + "," + kAnswer), "message 2 is an assistant message with no user"},
      {messages(kUser + "," + kUser + "," + kAnswer), "message 2 is a second user message in a row"},
      {messages(kUser + "," + kAnswer + "," + kAnswer), "message 3 is a second assistant message in a row"},
      {messages(kUser + "," + system + "," + kAnswer), "message 2 is a system message behind others"},
      {messages(kUser + "," + kResult), "message 2 is a tool message, but no call waits"},
      {R"({"messages": [{"role": "user", "content": "\ud800"}]})", "not valid JSON"},
      {messages(kUser + "," + kAnswer) + "x", "not valid JSON"},
  };
  for (const BadCase& c : cases) {
    const std::string error = error_of(c.record);
    EXPECT_NE(error.find(c.fragment), std::string::npos) << c.record << "\nerror: " << error;
  }
}

TEST(ToolRecord, ABadRecordIsRefusedWithWhatIsWrongAndHowToMendIt) {
  const std::string two_calls =
      R"({"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "add", "arguments": {}}},
                                              {"id": "y", "function": {"name": "look", "arguments": {}}}]})";
  const std::vector<BadCase> cases = {
      {messages(kUser + "," + kCall), "calls 'add', which the record's \"tools\" do not declare"},
      {messages(kUser + "," + kCall, kTools) + " ", ""},
      {messages(kUser + "," + kCall + "," + kUser, kTools),
       "message 3 comes before the call \"call_0\" of 'add' was answered"},
      {messages(join({kUser, kCall, kAnswer}), kTools), "message 3 comes before the call"},
      {messages(join({kUser, two_calls, kResult, kAnswer}), kTools),
       "message 4 comes before the call \"y\" of 'look'"},
      {messages(join({kUser, two_calls, kResult}), kTools),
       "ends before the call \"y\" of 'look' was answered"},
      {messages(join({kUser, kCall, kResult, kResult}), kTools),
       "message 4 is a tool message, but no call waits"},
      {messages(join({kUser, kCall, R"({"role": "tool", "tool_call_id": "z", "content": "2"})"}), kTools),
       "answers the call \"z\", but the calls that wait are \"call_0\""},
      {messages(join({kUser, kCall, R"({"role": "tool", "name": "look", "content": "2"})"}), kTools),
       "has the name \"look\", but the call \"call_0\" that it answers is of \"add\""},
      {messages(join({kUser, kCall, R"({"role": "tool", "content": ""})"}), kTools), "has no content"},
      {messages(join({kUser, kCall, kResult, kUser}), kTools), "ends on a user message"},
      {messages(join({kUser, kAnswer, kAnswer}), kTools), "second assistant message in a row"},
      {messages(join({kUser, kAnswer}), R"(, "tools": {})"), "has \"tools\": {}; it is a list"},
      {messages(join({kUser, kAnswer}), R"(, "tools": [{"description": "x"}])"),
       "declares the tool {\"description\"}"},
      {messages(join({kUser, kAnswer}), R"(, "tools": [{"name": "a"}, {"name": "a"}])"),
       "declares the tool \"a\" twice"},
      {messages(join({kUser, kAnswer}), R"(, "tools": [{"name": "a", "parameters": "p"}])"), "JSON schema"},
      {messages(kUser + R"(, {"role": "assistant", "tool_calls": {}})", kTools),
       "has \"tool_calls\": {}; it is a list"},
      {messages(kUser + R"(, {"role": "assistant", "tool_calls": [{"id": "x"}]})", kTools),
       "has the tool call {\"id\"}"},
      {messages(kUser + R"(, {"role": "assistant", "tool_calls": [{"name": "add"}]})", kTools),
       "arguments left out"},
      {messages(kUser + R"(, {"role": "assistant", "tool_calls": [{"name": "add", "arguments": "[1]"}]})",
                kTools),
       "they are an object"},
      {messages(kUser + R"(, {"role": "assistant", "tool_calls": [{"name": "add", "arguments": "{"}]})",
                kTools),
       "not valid JSON at column 2"},
      {messages(
           kUser +
               R"(, {"role": "assistant", "tool_calls": [{"type": "custom", "name": "add", "arguments": {}}]})",
           kTools),
       "tool call of type \"custom\""},
      {messages(
           kUser +
               R"(, {"role": "assistant", "tool_calls": [{"id": "x", "name": "add", "arguments": {}}, {"id": "x", "name": "add", "arguments": {}}]})",
           kTools),
       "two tool calls with the id \"x\""},
  };
  for (const BadCase& c : cases) {
    const std::string error = error_of(c.record);
    EXPECT_NE(error.find(c.fragment), std::string::npos) << c.record << "\nerror: " << error;
    EXPECT_EQ(error.empty(), c.fragment.empty()) << c.record << "\nerror: " << error;
  }
}

TEST(ChatRecord, TextPartsAreJoinedAndNullFieldsAreAbsent) {
  const Json expected =
      Json::parse(R"([{"role": "user", "content": "ab"}, {"role": "assistant", "content": "c"}])");
  EXPECT_EQ(
      normal(messages(
          R"({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "role": "user"},
                               {"role": "assistant", "content": "c", "tool_calls": null, "refusal": null})",
          R"(, "metadata": {"x": [1]}, "tools": null)")),
      expected);
}

/// `count` members of an object: "a0": 1, …
std::string many_members(int count) {
  std::string text = R"("a0": 1)";
  for (int i = 1; i < count; ++i) text += R"(, "a)" + std::to_string(i) + R"(": 1)";
  return text;
}

// Time quadratic in the keys or calls would take these tests minutes.
TEST(ChatRecord, AnObjectMayHaveManyKeys) {
  const std::string record =
      messages(kUser + "," + kAnswer, R"(, "metadata": {)" + many_members(200'000) + "}");
  EXPECT_EQ(normal(record).size(), 2U);
  std::string twice = record;
  twice.replace(twice.rfind("a199999"), 7, "a100000");
  EXPECT_EQ(error_of(twice), "the key 'a100000' stands twice in one object; keep one of them");
}

TEST(ToolRecord, ArgumentsMayHaveManyKeysAndTurnsManyCalls) {
  const std::string arguments = "{" + many_members(100'000) + "}";
  for (const std::string& spelled : {arguments, Json(arguments).dump()}) {
    const Json list = normal(messages(
        kUser + R"(, {"role": "assistant", "tool_calls": [{"name": "add", "arguments": )" + spelled + "}]}",
        kTools));
    const Json& read = list[1]["tool_calls"][0]["function"]["arguments"];
    ASSERT_EQ(read.size(), 100'000U);
    EXPECT_EQ(std::prev(read.end()).key(), "a99999");
  }
  const std::vector<std::string> calls(20'000, R"({"name": "add", "arguments": {}})");
  const std::vector<std::string> results(20'000, kResult);
  const Json list = normal(messages(
      kUser + R"(, {"role": "assistant", "tool_calls": [)" + join(calls) + "]}, " + join(results), kTools));
  EXPECT_EQ(list.back()["tool_call_id"], "call_19999");
}

TEST(ChatRecord, SeveralSystemMessagesMayLead) {
  const Json list =
      normal(messages(R"({"role": "system", "content": "a"}, {"role": "system", "content": "b"},)" + kUser +
                      "," + kAnswer + "," + kUser));
  EXPECT_EQ(list.size(), 5U);
}

TEST(ToolRecord, AllSpellingsOfArgumentsAndMissingContentAreOneForm) {
  const std::vector<std::string> as_object = {R"({})", R"({"q":null})", R"({"q":"It's \"x\"\n<a>"})"};
  for (const std::string& arguments : as_object) {
    std::vector<Json> forms;
    for (const std::string& spelled : {arguments, Json(arguments).dump()}) {
      for (const char* content : {R"("content": null,)", R"("content": "",)", ""}) {
        const std::string turn = R"({"role": "assistant", )" + std::string(content) +
                                 R"( "tool_calls": [{"function": {"name": "add", "arguments": )" + spelled +
                                 "}}]}";
        forms.push_back(normal(messages(kUser + "," + turn, kTools)));
      }
    }
    for (const Json& form : forms) EXPECT_EQ(form.dump(), forms[0].dump());
    EXPECT_EQ(forms[0][1]["content"], "");
    EXPECT_EQ(forms[0][1]["tool_calls"][0]["function"]["arguments"].dump(), arguments);
  }
}

TEST(ToolRecord, ResultsAreMatchedToTheirCalls) {
  const std::string two_calls =
      R"({"role": "assistant", "tool_calls": [{"name": "add", "arguments": {}}, {"id": "own", "name": "look", "arguments": {}}, {"name": "add", "arguments": {}}]})";
  const Json list = normal(
      messages(join({kUser, two_calls,
                     R"({"role": "tool", "tool_call_id": "own", "content": "seen", "is_error": true})",
                     kResult, R"({"role": "tool", "tool_call_id": "call_1", "name": "add", "content": "3"})",
                     kAnswer, kUser, kUser, kCall}),
               kTools));
  EXPECT_EQ(list[1]["tool_calls"][0]["id"], "call_0");
  EXPECT_EQ(list[1]["tool_calls"][2]["id"], "call_1");
  EXPECT_EQ(list[2]["name"], "look");
  EXPECT_EQ(list[2]["is_error"], true);
  EXPECT_EQ(list[3]["tool_call_id"], "call_0");
  EXPECT_EQ(list[4]["tool_call_id"], "call_1");
  EXPECT_EQ(list[8]["tool_calls"][0]["id"], "call_2");
}

TEST(ToolRecord, TheDeclaredToolsAreKeptAsTheyAre) {
  const ChatRecord record = parse_chat_record(messages(kUser + "," + kAnswer, kTools), 5);
  ASSERT_NE(record.tools, nullptr);
  EXPECT_EQ(record.tools->size(), 2U);
  EXPECT_EQ(parse_chat_record(messages(kUser + "," + kAnswer, R"(, "tools": [])"), 5).tools, nullptr);
}

}  // namespace
}  // namespace retro::data
