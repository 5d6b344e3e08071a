// Which level a variable asks for, and where lines go.
#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace retro {
namespace {

TEST(Log, LevelsOfVariables) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("TRACE"), LogLevel::trace);
  EXPECT_EQ(parse_log_level("warning"), LogLevel::warn);
  EXPECT_EQ(parse_log_level("off"), LogLevel::off);
  EXPECT_EQ(parse_log_level("hyper=debug,info"), LogLevel::info);
  EXPECT_EQ(parse_log_level("retrograd=debug,info"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("retrograd::train=debug"), std::nullopt);
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

TEST(Log, LinesGoToTheSinkFromTheirLevelOn) {
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  set_log_level(LogLevel::info);
  log_debug("{}", "hidden");
  log_info("a {} line", 1);
  log_warn("braces in a value: {}", "{}");
  set_log_level(LogLevel::debug);
  log_debug("shown");
  set_log_level(LogLevel::warn);
  set_log_sink({});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].ends_with("info a 1 line")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("braces in a value: {}")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with("debug shown")) << lines[2];
}

}  // namespace
}  // namespace retro
