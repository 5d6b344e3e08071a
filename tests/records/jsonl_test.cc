#include "data/jsonl.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/temp_folder.h"

namespace retro::data {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& text) {
  try {
    check_chat(text, "train.jsonl");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return {};
}

std::string chat(const std::string& user, const std::string& assistant) {
  return Json{
      {"messages", {{{"role", "user"}, {"content", user}}, {{"role", "assistant"}, {"content", assistant}}}}}
      .dump();
}

std::vector<Json> messages_of(const std::string& text) {
  std::vector<Json> all;
  for (const RecordLine& line : check_chat(text, "train.jsonl")) {
    all.push_back(*parse_chat_record(line.text, line.number).messages);
  }
  return all;
}

TEST(Jsonl, MarkLineEndsBlankLinesAndAMissingLastLineEndChangeNothing) {
  const std::vector<std::string> records = {chat("a", "b"), chat("c", "line\xE2\x80\xA8 separator"),
                                            chat("e", "f")};
  const std::string plain = records[0] + "\n" + records[1] + "\n" + records[2] + "\n";
  const std::string other = "\xEF\xBB\xBF" + records[0] + "\r\n" + records[1] + "\r\n  \r\n" + records[2];
  EXPECT_EQ(messages_of(plain).size(), 3U);
  EXPECT_EQ(messages_of(plain), messages_of(other));
  EXPECT_EQ(check_chat(other, "f").back().number, 4U);
}

TEST(Jsonl, EveryBadLineIsNamedInOneGo) {
  const std::string text = chat("a", "b") + "\n{\"messages\":\n" + chat("c", "d") + "\n[1,2]\n" +
                           R"({"messages":[{"role":"assistant","content":"x"}]})" + "\n";
  const std::string error = error_of(text);
  EXPECT_NE(error.find("train.jsonl:2: not valid JSON at column 13"), std::string::npos) << error;
  EXPECT_NE(error.find("\ntrain.jsonl:4: is [a list of 2]; each line is one JSON object"), std::string::npos)
      << error;
  EXPECT_NE(error.find("\ntrain.jsonl:5: message 1 is an assistant message with no user message before it"),
            std::string::npos)
      << error;
}

TEST(Jsonl, ABadRoleAmongTenThousandIsFoundByItsLine) {
  std::string text;
  for (int line = 1; line <= 10000; ++line) {
    std::string record = chat("question " + std::to_string(line), "answer");
    if (line == 7312) record.replace(record.find("assistant"), 9, "asistant");
    text += record + "\n";
  }
  const std::string error = error_of(text);
  EXPECT_EQ(
      error.find(
          "train.jsonl:7312: message 2 has the role \"asistant\"; it must be system, user, assistant or "
          "tool"),
      0U)
      << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(Jsonl, TwentyBadLinesAreShownAndTheRestCounted) {
  std::string text;
  for (int line = 0; line < 50; ++line) text += "{}\n";
  const std::string error = error_of(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_NE(error.find("and 30 more bad lines"), std::string::npos);
}

TEST(Jsonl, AFileWithoutRecordsIsRefused) {
  for (const std::string& text : {std::string(), std::string("\xEF\xBB\xBF"), std::string("\n \r\n\t\n")}) {
    EXPECT_NE(error_of(text).find("train.jsonl: has no records"), std::string::npos);
  }
}

TEST(Jsonl, OtherFormatsAreToldApart) {
  EXPECT_NE(error_of("[\n{\"messages\": []}\n]\n").find("train.jsonl:1: begins a JSON list"),
            std::string::npos);
  EXPECT_NE(error_of("[{\"messages\": []}]").find("convert IN OUT`"), std::string::npos);
  std::string wide = "\xFF\xFE";
  for (const char c : chat("a", "b")) wide += std::string{c, '\0'};
  EXPECT_NE(error_of(wide).find("UTF-16"), std::string::npos);
}

TEST(Jsonl, BytesThatAreNotUtf8AreNamedByColumn) {
  const std::string error = error_of(chat("a", "b") + "\n{\"messages\": \"\xff\"}\n");
  EXPECT_EQ(error, "train.jsonl:2: not UTF-8 at column 15; save the file as UTF-8");
}

TEST(Jsonl, DeepNestingIsRefusedAtOnce) {
  for (const size_t depth : {size_t{3000}, size_t{5000000}}) {
    const std::string text =
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":)" +
        std::string(depth, '[') + std::string(depth, ']') + "}";
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NE(error_of(text).find("train.jsonl:1: nested more than 100 deep"), std::string::npos);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  }
}

TEST(Jsonl, ALineOfManyMebibytesIsOneRecord) {
  const std::string long_text(size_t{24} << 20, 'x');
  const auto messages = messages_of(chat(long_text, "ok") + "\n" + chat("a", "b"));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0][0]["content"].get_ref<const std::string&>().size(), long_text.size());
}

TEST(ChatFile, ReadsRecordsWhenAskedFor) {
  const support::TempFolder folder;
  const auto path = folder / "chat.jsonl";
  write_file(path, chat("a", "b") + "\n\n" + chat("c", "d") + "\n");
  const ChatFile file(path);
  ASSERT_EQ(file.size(), 2U);
  EXPECT_EQ(file.line(1), 3U);
  EXPECT_EQ((*file.record(1).messages)[1]["content"], "d");
  EXPECT_EQ(file.record(1).line, 3U);
}

TEST(ChatFile, AFileThatIsNotThereIsADataError) {
  try {
    ChatFile("/nowhere/chat.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("/nowhere/chat.jsonl"), std::string::npos);
  }
}

TEST(TextFile, TheMarkIsNotText) {
  const support::TempFolder folder;
  write_file(folder / "a.txt", "\xEF\xBB\xBFhello");
  EXPECT_EQ(TextFile(folder / "a.txt").text(), "hello");
  EXPECT_EQ(TextFile(folder / "a.txt").bytes().size(), 8U);
}

TEST(TextFile, WhatIsNotUtf8IsNamedByLineAndColumn) {
  const support::TempFolder folder;
  write_file(folder / "a.txt", "one\ntwo \xe9t\xe9\n");
  try {
    TextFile(folder / "a.txt");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a.txt:2: not UTF-8 at column 5"), std::string::npos)
        << error.what();
  }
}

TEST(Format, FollowsTheNameAndThenTheFirstLine) {
  EXPECT_EQ(infer_format("a.jsonl", "x"), FileFormat::chat);
  EXPECT_EQ(infer_format("a.JSON", "x"), FileFormat::chat);
  EXPECT_EQ(infer_format("a.txt", "{"), FileFormat::text);
  EXPECT_EQ(infer_format("a.md", "{"), FileFormat::text);
  EXPECT_EQ(infer_format("a.data", "\xEF\xBB\xBF\n \n {\"a\"}"), FileFormat::chat);
  EXPECT_EQ(infer_format("a", "[1]"), FileFormat::text);
  EXPECT_EQ(infer_format("a", ""), FileFormat::text);
}

}  // namespace
}  // namespace retro::data
