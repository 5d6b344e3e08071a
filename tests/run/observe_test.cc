// The folder of [observe]: its records, and that nothing about it stops a run.
#include "run/observe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/temp_folder.h"

namespace retro::run {
namespace {

using Json = nlohmann::ordered_json;

ObservedRollout rollout(int64_t update, int64_t group, int64_t member, double reward) {
  ObservedRollout one;
  one.update = update;
  one.group = group;
  one.member = member;
  one.prompt = group;
  one.completion = "answer " + std::to_string(member);
  one.tokens = 5;
  one.reward = one.reward_raw = reward;
  one.advantage = reward - 0.5;
  one.seed = UINT64_MAX;
  return one;
}

class ObserveTest : public testing::Test {
 protected:
  Observer open(std::optional<int64_t> resumed = {}, ObserveOptions options = {}) {
    options.directory = directory_;
    return {options, {"grpo", "run.toml", "base.gguf", 10, resumed}, [this](std::string_view text) {
              warnings_.emplace_back(text);
            }};
  }
  std::string text(const char* name) const { return read_file(directory_ / name); }
  std::vector<Json> records() const {
    std::vector<Json> all;
    std::string line;
    for (const char c : text("observe.jsonl")) {
      if (c != '\n') {
        line += c;
        continue;
      }
      all.push_back(Json::parse(line));
      line.clear();
    }
    EXPECT_TRUE(line.empty());
    return all;
  }

  support::TempFolder folder_;
  std::filesystem::path directory_ = folder_ / "observe";
  std::vector<std::string> warnings_;
};

TEST_F(ObserveTest, EveryRecordIsALineWithVersionTypeTimeAndSegment) {
  {
    Observer observer = open();
    observer.prompt(3, Json::parse(R"([{"role": "user", "content": "hi"}])"));
    observer.prompt(3, Json::parse(R"([{"role": "user", "content": "hi"}])"));
    ObservedRollout cut = rollout(0, 0, 1, -1);
    cut.truncated = true;
    cut.skip = SkipReason::truncated;
    cut.advantage.reset();
    cut.judge_term = 0.25;
    observer.rollout(rollout(0, 0, 0, 1.5));
    observer.rollout(cut);
    ObservedRollout critic = rollout(0, 1, 0, 2);
    critic.advantage_range = {-0.5, 0.75};
    observer.rollout(critic);
    observer.selection({0, 0, {0}, SkipReason::none, 0.25, 1.25});
    observer.selection({0, 1, {}, SkipReason::zero_signal, 2, 0});
    observer.outcome(0, 0, true);
    const std::vector<MetricValue> metrics = {{"reward/mean", 0.5}, {"policy/kl", NAN}};
    observer.update(0, false, metrics);
    observer.update(1, true, {});
  }
  const std::vector<Json> all = records();
  std::vector<std::string> types;
  for (const Json& record : all) {
    EXPECT_EQ(record.at("v"), 1);
    EXPECT_EQ(record.at("segment"), 1);
    EXPECT_EQ(record.at("time").get<std::string>().size(), 24U);
    types.push_back(record.at("type").get<std::string>());
  }
  EXPECT_EQ(types, (std::vector<std::string>{"run", "prompt", "rollout", "rollout", "rollout", "selection",
                                             "selection", "outcome", "update", "update"}));
  EXPECT_TRUE(all[0].at("resumed_from_update").is_null());
  EXPECT_EQ(all[1].at("key"), "p:3");
  EXPECT_EQ(all[1].at("messages")[0].at("content"), "hi");
  EXPECT_EQ(all[2].at("prompt"), "p:0");
  EXPECT_EQ(all[2].at("reward"), 1.5);
  EXPECT_EQ(all[2].at("seed"), "18446744073709551615");
  EXPECT_TRUE(all[2].at("trained").is_null());
  EXPECT_TRUE(all[2].at("skip_reason").is_null());
  EXPECT_EQ(all[3].at("skip_reason"), "truncated");
  EXPECT_EQ(all[3].at("judge_term"), 0.25);
  EXPECT_TRUE(all[3].at("advantage").is_null());
  EXPECT_EQ(all[4].at("advantage_min"), -0.5);
  EXPECT_EQ(all[4].at("advantage_max"), 0.75);
  EXPECT_FALSE(all[4].contains("advantage"));
  EXPECT_EQ(all[6].at("skip_reason"), "zero_signal");
  EXPECT_EQ(all[8].at("status"), "completed");
  EXPECT_TRUE(all[8].at("metrics").at("policy/kl").is_null());
  EXPECT_EQ(all[9].at("status"), "skipped");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ObserveTest, TheScriptHasTheSameRecordsAsCalls) {
  { open().rollout(rollout(0, 0, 0, 1)); }
  { open(1).update(1, false, {}); }
  std::string calls;
  std::string line;
  for (const char c : text("observe.jsonl")) {
    if (c == '\n') {
      calls += "retrograd_observe(" + line + ");\n";
      line.clear();
    } else {
      line += c;
    }
  }
  EXPECT_EQ(text("observe.js"), calls);
  EXPECT_EQ(text("index.html"), kObservePage);
}

TEST_F(ObserveTest, ARunGoesOnInTheNextSegmentAndATornLineIsCut) {
  { open().rollout(rollout(0, 0, 0, 1)); }
  AppendFile(directory_ / "observe.jsonl").append("{\"v\":1,\"type\":\"roll");
  std::filesystem::remove(directory_ / "observe.js");
  { open(7).update(7, false, {}); }
  const std::vector<Json> all = records();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[2].at("type"), "run");
  EXPECT_EQ(all[2].at("segment"), 2);
  EXPECT_EQ(all[2].at("resumed_from_update"), 7);
  EXPECT_EQ(all[3].at("segment"), 2);
  const std::string calls = text("observe.js");
  EXPECT_EQ(std::count(calls.begin(), calls.end(), '\n'), 4);
}

TEST_F(ObserveTest, EachSoManyUpdatesAreWanted) {
  const Observer each = open({}, {.every = 3});
  EXPECT_TRUE(each.wants(0) && each.wants(3) && each.wants(6));
  EXPECT_FALSE(each.wants(1) || each.wants(2) || each.wants(4));
  EXPECT_FALSE(Observer().wants(0));
}

TEST_F(ObserveTest, TextIsCutByCharacters) {
  EXPECT_EQ(cut_text("héllo wörld", 0), "héllo wörld");
  EXPECT_EQ(cut_text("héllo wörld", 11), "héllo wörld");
  EXPECT_EQ(cut_text("héllo wörld", 2), "hé…[+9 chars]");
  EXPECT_EQ(cut_text("", 3), "");
  {
    Observer observer = open({}, {.max_text_chars = 3});
    observer.prompt(0, Json::parse(R"([{"role": "user", "content": "abcdef"}])"));
    observer.rollout(rollout(0, 0, 0, 1));
  }
  EXPECT_EQ(records()[1].at("messages")[0].at("content"), "abc…[+3 chars]");
  EXPECT_EQ(records()[2].at("completion"), "ans…[+5 chars]");
}

TEST_F(ObserveTest, ACompletionThatIsNotUtf8StillMakesALine) {
  {
    Observer observer = open();
    ObservedRollout odd = rollout(0, 0, 0, 1);
    odd.completion = "a\xff\n</script>\xE2\x80\xA8";
    observer.rollout(odd);
  }
  EXPECT_EQ(records()[1].at("completion"), "a\xEF\xBF\xBD\n</script>\xE2\x80\xA8");
}

/// Whatever is done with it, an observer that is off says so once and does nothing more.
void use(Observer& observer) {
  for (int i = 0; i < 3; ++i) {
    observer.prompt(i, Json::parse(R"([{"role": "user", "content": "hi"}])"));
    observer.rollout(rollout(i, 0, 0, 1));
    observer.selection({i, 0, {0}, SkipReason::none, 0, 0});
    observer.outcome(i, 0, true);
    observer.update(i, false, {});
  }
}

TEST_F(ObserveTest, AFolderThatCannotBeMadeTurnsItOffWithAWarning) {
  write_file(directory_, "a file is in the way");
  Observer observer = open();
  use(observer);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("[observe] is off, the run goes on"), std::string::npos) << warnings_[0];
  EXPECT_FALSE(observer.wants(0));
}

TEST_F(ObserveTest, AFolderThatAnotherRunWritesToTurnsItOff) {
  Observer first = open();
  Observer second = open();
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("another run writes there"), std::string::npos) << warnings_[0];
  use(second);
  use(first);
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_TRUE(first.wants(0));
}

TEST_F(ObserveTest, FilesOfOthersAreLeftAsTheyAre) {
  std::filesystem::create_directories(directory_);
  write_file(directory_ / "index.html", "<p>mine</p>");
  { open(); }
  EXPECT_EQ(text("index.html"), "<p>mine</p>");
  write_file(directory_ / "index.html", "");
  write_file(directory_ / "observe.jsonl", "{\"mine\": 1}\n");
  { open(); }
  EXPECT_EQ(text("observe.jsonl"), "{\"mine\": 1}\n");
  ASSERT_EQ(warnings_.size(), 2U);
  EXPECT_NE(warnings_[0].find("index.html"), std::string::npos);
  EXPECT_NE(warnings_[1].find("observe.jsonl"), std::string::npos);
}

TEST_F(ObserveTest, AFullDiskTurnsItOffWithAWarning) {
  {
    Observer observer = open();
    g_write_fault = [](size_t) { fail(ErrorKind::io, "No space left on device"); };
    use(observer);
  }
  g_write_fault = nullptr;
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("No space left on device"), std::string::npos) << warnings_[0];
}

}  // namespace
}  // namespace retro::run
