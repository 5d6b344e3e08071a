// A metrics file has one value a step whatever was stopped and resumed, and never stops a run.
#include "run/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/temp_folder.h"

namespace retro::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::retro::support::TempFolder;

std::vector<json> events(const fs::path& path) {
  std::vector<json> parsed;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) parsed.push_back(json::parse(line));
  return parsed;
}

void log_steps(MetricsLog& log, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) {
    const std::array<MetricValue, 1> values = {MetricValue{"train/loss", 1.0 / static_cast<double>(step)}};
    log.write("step", step, values);
  }
}

void expect_no_warning(std::string_view text) {
  ADD_FAILURE() << text;
}

TEST(Metrics, ALineIsAnEvent) {
  const TempFolder folder;
  MetricsLog log(folder / "m.jsonl", std::nullopt, expect_no_warning);
  const std::array<MetricValue, 5> values = {{{"epoch", 0},
                                              {"train/loss", 0.1 + 0.2},
                                              {"a \"b\"", 1e300},
                                              {"nan", std::nan("")},
                                              {"inf", -std::numeric_limits<double>::infinity()}}};
  log.write("step", 12, values);
  const std::string text = read_file(folder / "m.jsonl");
  EXPECT_EQ(text.rfind("{\"event\":\"step\",\"step\":12,\"time\":\"", 0), 0U) << text;
  EXPECT_NE(text.find("\"epoch\":0,\"train/loss\":0.30000000000000004,"), std::string::npos) << text;
  const auto parsed = events(folder / "m.jsonl");
  ASSERT_EQ(parsed.size(), 1U);
  EXPECT_EQ(parsed[0]["a \"b\""].get<double>(), 1e300);
  EXPECT_TRUE(parsed[0]["nan"].is_null());
  EXPECT_TRUE(parsed[0]["inf"].is_null());
  const auto time = parsed[0]["time"].get<std::string>();
  ASSERT_EQ(time.size(), std::string("2024-05-01T12:00:00.123Z").size());
  EXPECT_EQ(time[10], 'T');
  EXPECT_EQ(time.back(), 'Z');
}

TEST(Metrics, AFreshRunStartsANewFile) {
  const TempFolder folder;
  const fs::path path = folder / "m.jsonl";
  {
    MetricsLog log(path, std::nullopt, expect_no_warning);
    log_steps(log, 1, 5);
  }
  MetricsLog log(path, std::nullopt, expect_no_warning);
  log_steps(log, 1, 2);
  EXPECT_EQ(events(path).size(), 2U);
}

TEST(Metrics, AfterAResumeEachStepHasOneValue) {
  const TempFolder folder;
  const fs::path path = folder / "m.jsonl";
  {
    MetricsLog log(path, std::nullopt, expect_no_warning);
    log_steps(log, 1, 5);
    log.write("evaluation", 5, {});
    log_steps(log, 6, 8);
  }
  // The kill tore the last line.
  AppendFile(path).append("{\"event\":\"step\",\"step\":9,\"ti");
  MetricsLog log(path, 5, expect_no_warning);
  log.write("evaluation", 5, {});  // redone behind the checkpoint
  log_steps(log, 6, 10);
  log.sync();
  std::vector<int64_t> steps;
  int evaluations = 0;
  for (const json& event : events(path)) {
    if (event["event"] == "step") steps.push_back(event["step"].get<int64_t>());
    if (event["event"] == "evaluation") ++evaluations;
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(evaluations, 1);
}

TEST(Metrics, DamagedLinesAreDroppedOnResume) {
  const TempFolder folder;
  const fs::path path = folder / "m.jsonl";
  {
    MetricsLog log(path, std::nullopt, expect_no_warning);
    log_steps(log, 1, 2);
  }
  AppendFile(path).append(std::string(100, '\0') + "\n");
  MetricsLog log(path, 2, expect_no_warning);
  log_steps(log, 3, 3);
  EXPECT_EQ(events(path).size(), 3U);
}

TEST(Metrics, ResumingWithoutAFileStartsOne) {
  const TempFolder folder;
  MetricsLog log(folder / "m.jsonl", 4, expect_no_warning);
  log_steps(log, 5, 6);
  EXPECT_EQ(events(folder / "m.jsonl").size(), 2U);
}

TEST(Metrics, AFileOfAnotherKindIsNotTouched) {
  const TempFolder folder;
  const fs::path path = folder / "data.jsonl";
  const std::string records = "{\"messages\": []}\n{\"messages\": []}\n";
  write_file(path, records);
  for (const auto resumed : {std::optional<int64_t>(), std::optional<int64_t>(3)}) {
    EXPECT_THROW(MetricsLog(path, resumed, expect_no_warning), Error);
    EXPECT_EQ(read_file(path), records);
  }
}

TEST(Metrics, APathThatCannotBeWrittenIsToldAtOnce) {
  const TempFolder folder;
  try {
    MetricsLog log(folder / "none/m.jsonl", std::nullopt, expect_no_warning);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("none/m.jsonl"), std::string::npos) << error.what();
  }
}

TEST(Metrics, AFailureTurnsItOffWithOneWarning) {
  const TempFolder folder;
  const fs::path path = folder / "m.jsonl";
  int warnings = 0;
  MetricsLog log(path, std::nullopt, [&](std::string_view text) {
    ++warnings;
    EXPECT_NE(text.find("No space left"), std::string_view::npos) << text;
  });
  log_steps(log, 1, 3);
  g_write_fault = [](size_t) { fail(ErrorKind::io, "m.jsonl: cannot write: No space left on device"); };
  log_steps(log, 4, 6);
  g_write_fault = nullptr;
  log_steps(log, 7, 9);
  log.sync();
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(events(path).size(), 3U);
}

TEST(Metrics, AResumeThatCannotRewriteKeepsTheFile) {
  const TempFolder folder;
  const fs::path path = folder / "m.jsonl";
  {
    MetricsLog log(path, std::nullopt, expect_no_warning);
    log_steps(log, 1, 9);
  }
  const std::string before = read_file(path);
  for (int n = 0; n < 2; ++n) {
    int at = n;
    g_write_fault = [&at](size_t) {
      if (at-- == 0) fail(ErrorKind::io, "full");
    };
    EXPECT_THROW(MetricsLog(path, 4, expect_no_warning), Error);
    g_write_fault = nullptr;
    EXPECT_EQ(read_file(path), before);
  }
}

TEST(Metrics, NoneWritesNothing) {
  MetricsLog log;
  log_steps(log, 1, 3);
  log.sync();
}

TEST(Metrics, ADeviceIsAppendedTo) {
  MetricsLog log("/dev/full", std::nullopt, [](std::string_view text) {
    EXPECT_NE(text.find("/dev/full: cannot write: No space left on device"), std::string_view::npos) << text;
  });
  log_steps(log, 1, 2);
}

}  // namespace
}  // namespace retro::run
