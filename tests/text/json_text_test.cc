#include "text/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace retro::text {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& text) {
  try {
    parse_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return {};
}

TEST(JsonText, ValuesKeepTheirKindAndTheOrderOfKeys) {
  for (const std::string text :
       {"null", "true", "-3", "18446744073709551615", "0.5", "1e+300", R"("\u00e9 \"")", "[]", "{}",
        R"({"b":[1,{"z":{},"a":[[]]},2],"a":{"c":null},"":false})", R"([{"x":1},{"x":[2,{"x":3}]},4])"}) {
    EXPECT_EQ(parse_json(text).dump(), Json::parse(text).dump());
    EXPECT_EQ(parse_json(text).type(), Json::parse(text).type());
  }
}

TEST(JsonText, WhatIsWrongIsSaidWithItsColumn) {
  EXPECT_EQ(error_of(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
            "the key 'a' stands twice in one object; keep one of them");
  EXPECT_EQ(error_of("[\"\xff\"]"), "not UTF-8 at column 3; save the file as UTF-8");
  EXPECT_EQ(error_of(std::string(101, '[')), "nested more than 100 deep; flatten it");
  EXPECT_EQ(error_of(std::string(100, '[') + std::string(100, ']')), "");
  for (const std::string text : {"", "{", "[1,]", "{\"a\"}", "[1e999]", "1 2", "\"\\ud800\""}) {
    EXPECT_EQ(error_of(text).find("not valid JSON at column"), 0U) << text << ": " << error_of(text);
  }
}

TEST(JsonText, OfEqualKeysTheLastWinsWhereTheyAreAllowed) {
  EXPECT_EQ(try_parse_json(R"({"a": {"b": 1}, "c": 2, "a": {"d": 3}})").dump(), R"({"a":{"d":3},"c":2})");
  EXPECT_TRUE(try_parse_json("{").is_discarded());
  EXPECT_TRUE(try_parse_json(std::string(101, '[')).is_discarded());
}

}  // namespace
}  // namespace retro::text
