// Runs that sample answers, from end to end on a toy model.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/memory_info.h"
#include "tests/e2e/rollout_toy.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

RolloutDocument gspo() {
  RolloutDocument document;
  document.own =
      "importance_sampling_level = \"sequence\"\nprompt_order = \"shuffled\"\nbaseline = \"rloo\"\n";
  return document;
}

RolloutDocument ppo() {
  RolloutDocument document;
  document.algorithm = "ppo";
  return document;
}

class SameRollouts : public testing::TestWithParam<std::pair<const char*, RolloutDocument>> {};

TEST_P(SameRollouts, WhateverIsSampledAtOnceAndByHowManyThreads) {
  const RolloutRun run;
  const RolloutDocument plain = GetParam().second;
  const std::string expected = run.trained_hash(plain);
  const std::string scored = run.scored();
  for (const char* training :
       {"generation_concurrency = 1\n", "generation_concurrency = 3\nthreads = 1\n",
        "generation_concurrency = 16\nthreads = 2\n", "generation_batch = 7\nthreads = 3\n"}) {
    std::filesystem::remove(run / "reward.log");
    RolloutDocument other = plain;
    other.training = training;
    EXPECT_EQ(run.trained_hash(other), expected) << training;
    EXPECT_EQ(run.scored(), scored) << training;
  }
  std::filesystem::remove(run / "reward.log");
  RolloutDocument oneshot = plain;
  oneshot.own += "reward_mode = \"oneshot\"\n";
  run.train(oneshot);
  EXPECT_EQ(run.scored(), scored);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SameRollouts,
                         testing::Values(std::pair{"grpo", RolloutDocument{}}, std::pair{"gspo", gspo()},
                                         std::pair{"ppo", ppo()}),
                         [](const auto& one) { return one.param.first; });

// Two updates from the same place: the seed decides the answers, and nothing else does.
TEST(RolloutSeeds, AnotherSeedSamplesOtherAnswers) {
  const RolloutRun a, b, c;
  RolloutDocument document;
  document.updates = 1;
  a.train(document);
  b.train(document);
  EXPECT_EQ(a.scored(), b.scored());
  RolloutDocument other = document;
  other.own = "";
  std::string text = other.text();
  text.replace(text.find("seed = 3"), 8, "seed = 4");
  run::SilentReporter silent;
  c.train(text, silent);
  EXPECT_NE(c.scored(), a.scored());
}

std::string reward_of_all(const std::string& reward) {
  return "while IFS= read -r line; do case $line in '{\"prompt\":'*) "
         "rest=${line##*',\"_retrograd_batch\":'};\n"
         "printf '{\"reward\":" +
         reward + ",\"_retrograd_batch\":%s\\n' \"$rest\" ;;\n*) printf '%s\\n' \"$line\" ;; esac; done\n";
}

// Every answer hits the limit, or all are scored alike: the run stops and tells which, with the key to
// change.
TEST(StalledRun, StopsAndTellsTheCauseApart) {
  RolloutDocument document;
  document.updates = 50;
  document.own = "max_stalled_updates = 3\n";
  {
    const RolloutRun run(reward_of_all("0.5"));
    document.max_new_tokens = 4;
    Heard heard;
    const auto result = run.train(document, heard);
    EXPECT_LT(result.steps, 50 * 4);
    ASSERT_FALSE(heard.lines.empty());
    const auto told = std::find_if(heard.lines.begin(), heard.lines.end(),
                                   [](const std::string& line) { return line.starts_with("stopping: "); });
    ASSERT_NE(told, heard.lines.end());
    for (const char* part :
         {"3 updates in a row", "% were truncated, ", "raise it ([grpo].max_stalled_updates = 3)",
          "[grpo.sampling].max_new_tokens = 4"}) {
      EXPECT_NE(told->find(part), std::string::npos) << *told;
    }
  }
  {
    const RolloutRun run(reward_of_all("0.5"));
    document.max_new_tokens = 90;
    Heard heard;
    run.train(document, heard);
    const auto told = std::find_if(heard.lines.begin(), heard.lines.end(),
                                   [](const std::string& line) { return line.starts_with("stopping: "); });
    ASSERT_NE(told, heard.lines.end());
    EXPECT_NE(told->find("3 updates in a row"), std::string::npos) << *told;
  }
}

// Thirty updates with answers of many lengths: memory at an update's end stays what it was after the second.
TEST(RolloutMemory, StaysFlatUpdateAfterUpdate) {
  class AtUpdates : public run::SilentReporter {
   public:
    void line(std::string_view text) override {
      if (text.starts_with("update ")) held.push_back(resident_bytes());
    }
    std::vector<int64_t> held;
  };
  const RolloutRun run;
  RolloutDocument document;
  document.updates = 30;
  document.max_new_tokens = 40;
  AtUpdates at;
  run.train(document, at);
  ASSERT_EQ(at.held.size(), 30U);
  const auto settled = static_cast<double>(at.held[1]);
  for (size_t u = 2; u < at.held.size(); ++u) {
    EXPECT_LT(static_cast<double>(at.held[u]), 1.01 * settled) << "update " << u + 1;
  }
}

// What is wrong with prompts is told before anything starts, with exit code 2.
TEST(RolloutInput, IsCheckedBeforeAnythingStarts) {
  struct Case {
    std::string prompts;
    std::vector<std::string> fragments;
  };
  const std::string good = chat_line({"hi"});
  const std::vector<Case> cases = {
      {"", {"prompts.jsonl: has no records"}},
      {good + "{\"messages\":\n" + chat_line({"a", "b"}),
       {"prompts.jsonl:2: ", "prompts.jsonl:3: ", "ends on an assistant message"}},
      {good + chat_line({std::string(300, 'x')}), {"prompts.jsonl:2: the prompt is ", "set training.ctx to"}},
  };
  for (const Case& one : cases) {
    const RolloutRun run;
    run.put("prompts.jsonl", one.prompts);
    run.put("run.toml", RolloutDocument().text());
    const Outcome outcome = run_program(run.path(), {"train", "run.toml"});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    for (const std::string& fragment : one.fragments) {
      EXPECT_NE(outcome.err.find(fragment), std::string::npos) << outcome.err << "\nlacks: " << fragment;
    }
    EXPECT_FALSE(std::filesystem::exists(run / "reward.log"));
    EXPECT_FALSE(std::filesystem::exists(run / "adapter.gguf"));
  }
  const RolloutRun run;
  std::string text = RolloutDocument().text();
  text.replace(text.find("[\"sh\""), 5, "[\"no-such-shell\"");
  run.put("run.toml", text);
  const Outcome outcome = run_program(run.path(), {"train", "run.toml"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("no-such-shell"), std::string::npos) << outcome.err;
}

// Prompts as they are continued from, and how many do not fit.
TEST(RolloutCommands, PreviewShowsPromptsAndNewWritesADocumentThatIsRead) {
  const RolloutRun run;
  run.put("run.toml", RolloutDocument().text());
  const Outcome preview = run_program(run.path(), {"preview", "run.toml", "--records", "1"});
  ASSERT_EQ(preview.code, 0) << preview.err;
  for (const char* part : {"--- line 1: ", "question 0?", "5 prompts: ", "0 longer than 116",
                           "samples 6 answers", "takes 16 steps"}) {
    EXPECT_NE(preview.out.find(part), std::string::npos) << preview.out << "lacks " << part;
  }
  EXPECT_EQ(preview.out.find("question 1"), std::string::npos);
  run.put("prompts.jsonl", chat_line({std::string(300, 'x')}));
  const Outcome overlong = run_program(run.path(), {"preview", "run.toml"});
  EXPECT_EQ(overlong.code, 0) << overlong.err;
  EXPECT_NE(overlong.out.find("1 longer than 116"), std::string::npos) << overlong.out;
  for (const char* algorithm : {"ppo", "grpo"}) {
    const std::string out = fmt::format("{}.toml", algorithm);
    const Outcome written = run_program(
        run.path(), {"new", algorithm, "--model", "model.gguf", "--data", "prompts.jsonl", "--out", out});
    EXPECT_EQ(written.code, 0) << written.err;
    EXPECT_TRUE(run::load_document(run / out).rolls_out());
  }
}

// `bench` measures the rewards that an evaluation of the run measured, of the base and with the adapter.
TEST(RolloutCommands, BenchShowsTheRewardsOfBaseAndAdapterOnTheSamePrompts) {
  const RolloutRun run;
  RolloutDocument document;
  document.rest = "[evaluation]\ndata = \"heldout.jsonl\"\n[metrics]\njsonl = \"metrics.jsonl\"\n";
  run.put("run.toml", document.text());
  const Outcome trained = run_program(run.path(), {"train", "run.toml", "--json", "-"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome bench =
      run_program(run.path(), {"bench", "run.toml", "--adapter", "adapter.gguf", "--json", "-"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const auto json = nlohmann::json::parse(bench.out);
  EXPECT_EQ(json.at("prompts"), 3);
  EXPECT_EQ(json.at("eval/mean_reward"), nlohmann::json::parse(trained.out).at("eval/mean_reward"));
  EXPECT_TRUE(json.at("base").contains("eval/mean_reward"));
  const Outcome two =
      run_program(run.path(), {"bench", "run.toml", "--data", "prompts.jsonl", "--limit", "2"});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find("2 prompts of prompts.jsonl"), std::string::npos) << two.out;
  EXPECT_NE(two.out.find("base     mean reward "), std::string::npos) << two.out;
  EXPECT_EQ(run_program(run.path(), {"bench", "run.toml", "--format", "text"}).code, 2);
}

// The folder of [observe] changes no byte, and neither does one that cannot be written.
TEST(RolloutObserve, ChangesNoByteWhateverBecomesOfIt) {
  const RolloutRun run;
  RolloutDocument document;
  const std::string expected = run.trained_hash(document);
  document.rest = "[observe]\ndirectory = \"observe\"\n";
  EXPECT_EQ(run.trained_hash(document), expected);
  const std::string records = run.get("observe/observe.jsonl");
  for (const char* type : {"run", "prompt", "rollout", "selection", "outcome", "update"}) {
    EXPECT_NE(records.find(fmt::format("\"type\":\"{}\"", type)), std::string::npos) << type;
  }
  const std::string calls = run.get("observe/observe.js");
  EXPECT_EQ(std::count(records.begin(), records.end(), '\n'), std::count(calls.begin(), calls.end(), '\n'));
  run.put("in_the_way", "a file");
  document.rest = "[observe]\ndirectory = \"in_the_way\"\n";
  Heard heard;
  run.train(document, heard);
  EXPECT_EQ(run.adapter_hash(), expected);
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_NE(heard.warnings[0].find("[observe] is off"), std::string::npos);
}

}  // namespace
}  // namespace retro::test
