#include "text/tool_calls.h"

#include <gtest/gtest.h>

namespace retro::text {
namespace {

ParsedTurn parse(std::string_view turn) {
  return hermes_markup().parse(turn);
}

TEST(ToolCalls, HermesCallsParseInOrder) {
  const ParsedTurn parsed = parse(
      "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": [null]}}\n</tool_call>\n"
      "<tool_call>{\"arguments\": {}, \"name\": \"g\"}</tool_call>");
  EXPECT_EQ(parsed.problem, "");
  EXPECT_EQ(parsed.content, "Let me look.");
  ASSERT_EQ(parsed.calls.size(), 2U);
  EXPECT_EQ(parsed.calls[0].name, "f");
  EXPECT_EQ(parsed.calls[0].arguments, R"({"b":1,"a":[null]})");
  EXPECT_EQ(parsed.calls[1].arguments, "{}");
}

TEST(ToolCalls, TextWithoutMarksHasNoCalls) {
  const ParsedTurn parsed = parse("{\"name\": \"f\"} </tool_call>");
  EXPECT_EQ(parsed.problem, "");
  EXPECT_TRUE(parsed.calls.empty());
  EXPECT_EQ(parsed.content, "{\"name\": \"f\"} </tool_call>");
}

TEST(ToolCalls, TheClosingMarkMayStandInsideAnArgument) {
  const ParsedTurn parsed = parse(
      R"(<tool_call>{"name": "f", "arguments": {"q": "a </tool_call> b <tool_call>"}}</tool_call> end)");
  EXPECT_EQ(parsed.problem, "");
  ASSERT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parsed.calls[0].arguments, R"({"q":"a </tool_call> b <tool_call>"})");
  EXPECT_EQ(parsed.content, "end");
}

TEST(ToolCalls, WhatDoesNotParseSaysWhy) {
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\"").problem, "<tool_call> is never closed");
  EXPECT_EQ(parse("<tool_call>{'name': 'f'}</tool_call>").problem,
            "the text between <tool_call> and </tool_call> is no JSON");
  EXPECT_EQ(parse("<tool_call>[]</tool_call>").problem, "a call is no JSON object");
  EXPECT_EQ(parse("<tool_call>{\"arguments\": {}}</tool_call>").problem, "a call has no name");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\"}</tool_call>").problem, "the call to 'f' has no 'arguments'");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>").problem,
            "the arguments of 'f' are no JSON object");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": " + std::string(50000, '[') + "</tool_call>")
                .problem,
            "the text between <tool_call> and </tool_call> is no JSON");
}

TEST(ToolCalls, ArgumentsCompareAsJson) {
  const std::vector<ToolCall> calls = {{"f", R"({"a":1,"b":[true,"x"]})"}};
  EXPECT_TRUE(same_calls(calls, std::vector<ToolCall>{{"f", R"({ "b": [true, "x"], "a": 1 })"}}));
  EXPECT_FALSE(same_calls(calls, std::vector<ToolCall>{{"f", R"({"a":1,"b":["x",true]})"}}));
  EXPECT_FALSE(same_calls(calls, std::vector<ToolCall>{{"g", calls[0].arguments}}));
  EXPECT_FALSE(same_calls(calls, {}));
}

}  // namespace
}  // namespace retro::text
