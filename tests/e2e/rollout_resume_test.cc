// Runs that sample answers lose nothing: killed anywhere, failed by their reward program, interrupted.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "run/checkpoint.h"
#include "tests/e2e/rollout_toy.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

RolloutDocument grpo_document() {
  RolloutDocument document;
  document.own = "prompt_order = \"shuffled\"\n";
  document.rest =
      "[grpo.dynamic_sampling]\nmax_resample_factor = 2\n[grpo.kl_schedule]\nwarmup_updates = 1\ntarget = "
      "0.01\n"
      "[checkpoint]\ndirectory = \"state\"\nmode = \"steps_and_best_eval\"\nevery_steps = 4\nkeep_last = 2\n"
      "[evaluation]\ndata = \"heldout.jsonl\"\nevery_iterations = 2\n";
  return document;
}

RolloutDocument ppo_document() {
  RolloutDocument document;
  document.algorithm = "ppo";
  document.rest =
      "[checkpoint]\ndirectory = \"state\"\nmode = \"steps\"\nevery_steps = 12\nkeep_last = 2\n"
      "[evaluation]\ndata = \"heldout.jsonl\"\nevery_iterations = 2\n";
  return document;
}

/// Every moment of a run that it tells of: a phase's progress, or a write to disk.
class Moments : public run::SilentReporter {
 public:
  explicit Moments(int64_t kill_at) : kill_at_(kill_at) {
    g_write_fault = [this](size_t) { pass("writing"); };
  }
  ~Moments() override { g_write_fault = {}; }
  void progress(std::string_view phase, int64_t, int64_t, std::string_view) override {
    const size_t colon = phase.find(": ");  // "update 3: sampling"
    pass(colon == std::string_view::npos ? phase : phase.substr(colon + 2));
  }

  std::vector<std::string> passed;

 private:
  void pass(std::string_view phase) {
    if (static_cast<int64_t>(passed.size()) == kill_at_) ::kill(::getpid(), SIGKILL);
    passed.emplace_back(phase);
  }
  int64_t kill_at_;
};

/// Trains in a child process that dies at moment `kill_at`, resuming where there is a checkpoint; returns
/// whether it died.
bool train_until(const RolloutRun& run, const RolloutDocument& document, int64_t kill_at) {
  const pid_t child = ::fork();
  RETRO_CHECK(child >= 0);
  if (child == 0) {
    try {
      Moments moments(kill_at);
      run::TrainOptions options;
      options.resume = run::newest_checkpoint(run / "state").has_value();
      run.train(document, moments, options);
      g_write_fault = {};
      std::string names;
      for (const std::string& phase : moments.passed) names += phase + "\n";
      run.put("moments", names);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
  }
  int status = 0;
  RETRO_CHECK(::waitpid(child, &status, 0) == child);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

class RolloutKill : public testing::TestWithParam<std::pair<const char*, RolloutDocument>> {};

TEST_P(RolloutKill, AnywhereLosesNothing) {
  const RolloutDocument document = GetParam().second;
  const RolloutRun whole;
  ASSERT_FALSE(train_until(whole, document, -1));
  const std::string expected = whole.adapter_hash();

  std::map<std::string, std::vector<int64_t>> moments;
  std::istringstream names(whole.get("moments"));
  int64_t count = 0;
  for (std::string name; std::getline(names, name);) moments[name].push_back(count++);
  for (const char* phase : {"sampling", "scoring", "training", "evaluating", "writing"}) {
    ASSERT_FALSE(moments[phase].empty()) << phase;
  }
  const bool full = std::getenv("RETRO_FULL") != nullptr;
  uint64_t draw = 0;
  for (const auto& [phase, places] : moments) {
    const int kills = full ? 30 : phase == "writing" ? 2 : 1;
    for (int i = 0; i < kills; ++i) {
      const RolloutRun run;
      const int64_t first = places[splitmix64(++draw) % places.size()];
      const auto second = static_cast<int64_t>(splitmix64(++draw) % static_cast<uint64_t>(count));
      SCOPED_TRACE(fmt::format("{}: killed at moment {}, then {}", phase, first, second));
      EXPECT_TRUE(train_until(run, document, first));
      (void)train_until(run, document, second);
      EXPECT_FALSE(train_until(run, document, -1));
      EXPECT_EQ(run.adapter_hash(), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RolloutKill,
                         testing::Values(std::pair{"grpo", grpo_document()},
                                         std::pair{"ppo", ppo_document()}),
                         [](const auto& one) { return one.param.first; });

// After the checkpoint, the same prompts are scored as by a run that never stopped, and none before it again.
TEST(RolloutResume, ScoresWhatAnUnbrokenRunScoresAndNothingTwice) {
  RolloutDocument document = grpo_document();
  document.updates = 6;
  const RolloutRun whole;
  whole.train(document);
  const RolloutRun run;
  RolloutDocument half = document;
  half.updates = 3;
  run.train(half);
  const run::TrainOptions resume{.resume = true, .state = {}, .on_start = {}};
  const std::string before = run.scored();
  std::filesystem::remove(run / "reward.log");
  run.train(document, resume);
  EXPECT_EQ(run.adapter_hash(), whole.adapter_hash());
  // The shorter run evaluated at its end as well; what was sampled for updates is the same.
  const auto of_updates = [](const std::string& scored) {
    std::string kept;
    std::istringstream lines(scored);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("held out") == std::string::npos) kept += line + "\n";
    }
    return kept;
  };
  EXPECT_EQ(of_updates(before) + of_updates(run.scored()), of_updates(whole.scored()));
}

// The reward program goes wrong in the third update: exit 1 with the line and its last words, the checkpoint
// is whole, and once mended the run ends in the bytes of one that never failed.
TEST(RewardFailure, EndsTheRunAndLeavesTheLastCheckpointWhole) {
  RolloutDocument document;
  document.rest = "[checkpoint]\ndirectory = \"state\"\nmode = \"steps\"\nevery_steps = 4\n";
  const RolloutRun whole;
  const std::string expected = whole.trained_hash(document);
  struct Case {
    std::string answer;  // what the program does in its third batch, with $rest as the echo
    std::string fragment;
  };
  const std::vector<Case> cases = {
      {R"(printf '{"reward":NaN,"_retrograd_batch":%s\n' "$rest")", "not JSON"},
      {R"(printf '{"reward":null,"_retrograd_batch":%s\n' "$rest")", "null; it must be a finite number"},
      {R"(printf '{"reward":Infinity,"_retrograd_batch":%s\n' "$rest")", "not JSON"},
      {R"(printf '{"reward":"1","_retrograd_batch":%s\n' "$rest")", "\"1\"; it must be a finite number"},
      {R"(printf '{"reward":true,"_retrograd_batch":%s\n' "$rest")", "true; it must be a finite number"},
      {R"(printf '{"_retrograd_batch":%s\n' "$rest")", "has no \"reward\""},
      {":", "ends the batch, but an answer is still due"},
      {R"(printf '{"reward":1,"_retrograd_batch":%s\n{"reward":1,"_retrograd_batch":%s\n' "$rest" "$rest")",
       "where"},
      {R"(printf '{"reward":1,"_retrograd_batch":2,"_retrograd_index":5}\n')", "_retrograd_index"},
      {"exit 3", "exit status 3"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.answer);
    std::string reward = kGoodReward;
    reward.replace(reward.find("      printf '{\"reward\""), 0,
                   "      case $rest in 2,*) echo 'last words' >&2; " + one.answer + "; continue ;; esac\n");
    const RolloutRun run(reward);
    run.put("run.toml", document.text());
    run.put("adapter.gguf", "of an earlier run");
    const Outcome failed = run_program(run.path(), {"train", "run.toml"});
    EXPECT_EQ(failed.code, 1) << failed.err;
    EXPECT_NE(failed.err.find(one.fragment), std::string::npos) << failed.err;
    for (const char* part :
         {"update 3: reward program `sh reward.sh`: ", "last words", "The last checkpoint, of step 8"})
      EXPECT_NE(failed.err.find(part), std::string::npos) << failed.err;
    EXPECT_EQ(run.get("adapter.gguf"), "of an earlier run");
    run.put("reward.sh", kGoodReward);
    const Outcome resumed = run_program(run.path(), {"train", "run.toml", "--resume"});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(run.adapter_hash(), expected);
  }
}

// Ctrl-C while the reward program thinks: the update is dropped, a checkpoint written, exit 130.
TEST(RolloutInterrupt, DropsAnUpdateThatHasNotStepped) {
  RolloutDocument document;
  document.rest = "[checkpoint]\ndirectory = \"state\"\nmode = \"steps\"\nevery_steps = 1000\n";
  const RolloutRun whole;
  const std::string expected = whole.trained_hash(document);
  std::string reward = kGoodReward;
  reward.replace(reward.find("      printf '{\"reward\""), 0,
                 "      case $rest in 2,*) touch \"$(dirname \"$0\")/thinking\"; sleep 1000 ;; esac\n");
  const RolloutRun run(reward);
  run.put("run.toml", document.text());
  Program program(run.path(), {"train", "run.toml"});
  ASSERT_TRUE(
      program.wait_for([&](const std::string&) { return std::filesystem::exists(run / "thinking"); }));
  program.signal(SIGINT);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  ASSERT_TRUE(run::newest_checkpoint(run / "state").has_value());
  run.put("reward.sh", kGoodReward);
  const Outcome resumed = run_program(run.path(), {"train", "run.toml", "--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(run.adapter_hash(), expected);
}

}  // namespace
}  // namespace retro::test
