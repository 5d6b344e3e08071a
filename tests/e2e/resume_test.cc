// Promise 3: a run killed anywhere goes on from its last checkpoint to the bytes of one that was not.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/random.h"
#include "run/checkpoint.h"
#include "run/interrupt.h"
#include "tests/e2e/toy_run.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

struct Kind {
  std::string name, optimizer, checkpoint, patience;
};

const Kind kKinds[] = {
    {"adamw", "adamw", "mode = \"steps_and_best_eval\"\nevery_steps = 2\nkeep_last = 2\n", ""},
    {"sgd", "sgd", "mode = \"steps_and_best_eval\"\nevery_steps = 2\nkeep_last = 2\n", ""},
    {"muon", "muon", "mode = \"steps\"\nevery_steps = 2\n", ""},
    {"gefen", "gefen", "mode = \"steps\"\nevery_steps = 2\n", ""},
    {"adamw8bit", "adamw8bit", "mode = \"steps\"\nevery_steps = 2\n", ""},
    {"best_alone", "adamw", "mode = \"best_eval\"\n", ""},
    // No evaluation gains so much: the run stops early.
    {"patience", "adamw", "mode = \"steps\"\nevery_steps = 2\n", "patience = 1\nmin_delta = 100.0\n"},
};

ToyDocument document_of(const Kind& kind) {
  ToyDocument toy;
  toy.training =
      "epochs = 3\nlr = 1e-2\nlr_scheduler = \"cosine\"\nctx = 64\nmicro_batch = 64\noptimizer = \"" +
      kind.optimizer + "\"\n";
  toy.rest = "[checkpoint]\ndirectory = \"state\"\n" + kind.checkpoint +
             "[evaluation]\ndata = \"heldout.jsonl\"\nevery_iterations = 1\n" + kind.patience +
             "[metrics]\njsonl = \"metrics.jsonl\"\n";
  return toy;
}

// Every moment of a run that it tells of: a phase's progress, or a write to disk.
class Moments : public run::SilentReporter {
 public:
  explicit Moments(int64_t kill_at) : kill_at_(kill_at) {
    g_write_fault = [this](size_t) { pass("writing"); };
  }
  ~Moments() override { g_write_fault = {}; }
  void progress(std::string_view phase, int64_t, int64_t, std::string_view) override { pass(phase); }

  std::vector<std::string> passed;

 private:
  void pass(std::string_view phase) {
    if (static_cast<int64_t>(passed.size()) == kill_at_) ::kill(::getpid(), SIGKILL);
    passed.emplace_back(phase);
  }
  int64_t kill_at_;
};

// Trains in a child process that dies at moment `kill_at`, resuming where there is a checkpoint; returns
// whether it died. The child leaves the phases it passed in `moments`.
bool train_until(const ToyRun& run, const ToyDocument& toy, int64_t kill_at) {
  const pid_t child = ::fork();
  RETRO_CHECK(child >= 0);
  if (child == 0) {
    try {
      Moments moments(kill_at);
      run::TrainOptions options;
      options.resume = run::newest_checkpoint(run / "state").has_value();
      run.train(toy, moments, options);
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

struct Result {
  std::string adapter, best;
  std::string steps;  // what metrics.jsonl says of each step, without times

  bool operator==(const Result&) const = default;
};

Result result_of(const ToyRun& run) {
  const bool has_best = std::filesystem::exists(run / "state/best.gguf");
  Result result{run.get("adapter.gguf"), has_best ? run.get("state/best.gguf") : "", ""};
  std::istringstream lines(run.get("metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    auto record = nlohmann::json::parse(line);
    for (const char* timed : {"time", "tokens_per_second"}) record.erase(timed);
    result.steps += record.dump() + "\n";
  }
  return result;
}

class Kill : public ::testing::TestWithParam<Kind> {};

TEST_P(Kill, AnywhereLosesNothing) {
  const ToyDocument toy = document_of(GetParam());
  const auto fresh = [] {
    auto run = std::make_unique<ToyRun>();
    run->put("heldout.jsonl", chat_lines(4));
    return run;
  };
  const auto whole = fresh();
  ASSERT_FALSE(train_until(*whole, toy, -1));
  const Result expected = result_of(*whole);

  std::map<std::string, std::vector<int64_t>> moments;
  std::istringstream names(whole->get("moments"));
  int64_t count = 0;
  for (std::string name; std::getline(names, name);) moments[name].push_back(count++);
  for (const char* phase : {"reading the model", "training", "evaluating", "writing"}) {
    ASSERT_FALSE(moments[phase].empty()) << phase;
  }

  const bool full = std::getenv("RETRO_FULL") != nullptr;
  uint64_t draw = 0;
  for (const auto& [phase, places] : moments) {
    const int kills = full ? 30 : phase == "writing" ? 2 : 1;
    for (int i = 0; i < kills; ++i) {
      const auto run = fresh();
      // The run is killed in this phase, then again anywhere while it goes on.
      const int64_t first = places[splitmix64(++draw) % places.size()];
      const auto second = static_cast<int64_t>(splitmix64(++draw) % static_cast<uint64_t>(count));
      SCOPED_TRACE(fmt::format("{}: killed at moment {}, then {}", phase, first, second));
      EXPECT_TRUE(train_until(*run, toy, first));
      (void)train_until(*run, toy, second);
      EXPECT_FALSE(train_until(*run, toy, -1));
      EXPECT_EQ(result_of(*run), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Kill, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return kind.param.name; });

// To resume what is finished changes nothing, from whichever checkpoint.
TEST(Resume, OfAFinishedRunGivesTheSameBytes) {
  for (const Kind& kind : kKinds) {
    const ToyRun run;
    run.put("heldout.jsonl", chat_lines(4));
    const ToyDocument toy = document_of(kind);
    run.train(toy);
    const Result expected = result_of(run);
    std::vector<std::filesystem::path> states;
    for (const auto& entry : std::filesystem::directory_iterator(run / "state")) {
      if (entry.path().extension() == ".state") states.push_back(entry.path());
    }
    ASSERT_FALSE(states.empty()) << kind.name;
    for (const auto& state : states) {
      run.train(toy, {.resume = true, .state = state, .on_start = {}});
      EXPECT_EQ(result_of(run), expected) << kind.name << " from " << state;
    }
  }
}

// A resumed run has rank, targets and alpha from its checkpoint: the first adapter may be gone, or another.
TEST(Resume, NeedsNoInitAdapter) {
  const ToyRun run;
  ToyDocument first;
  first.output = "init.gguf";
  first.lora = "rank = 3\nalpha = 12.0\ntargets = [\"q\", \"ffn_up\"]\ndtype = \"f32\"\n";
  run.train(first);
  ToyDocument toy;
  toy.lora = "init_adapter = \"init.gguf\"\n";
  toy.rest = kCheckpointEveryStep;
  const std::string expected = run.adapter(toy);
  const auto steps = run.train(toy, {.resume = true, .state = {}, .on_start = {}}).steps;
  const run::TrainOptions earlier{
      .resume = true,
      .state = run::step_state_path(run / "state", static_cast<uint64_t>(steps - 1)),
      .on_start = {}};
  first.lora = "rank = 3\nalpha = 99.0\ntargets = [\"q\", \"ffn_up\"]\n";
  run.train(first);
  run.train(toy, earlier);
  EXPECT_EQ(run.get("adapter.gguf"), expected);
  std::filesystem::remove(run / "init.gguf");
  run.train(toy, earlier);
  EXPECT_EQ(run.get("adapter.gguf"), expected);
}

// Stopped before its first step, a run leaves an earlier adapter in its place.
TEST(Interrupt, BeforeTheFirstStepWritesNothing) {
  const ToyRun run;
  ToyDocument toy;
  toy.rest = kCheckpointEveryStep;
  run.put("adapter.gguf", "of an earlier run");
  class StopAtStart : public run::SilentReporter {
    void progress(std::string_view phase, int64_t, int64_t, std::string_view) override {
      if (phase == "reading the model") run::request_interrupt();
    }
  };
  {
    const run::InterruptGuard guard;
    StopAtStart reporter;
    EXPECT_THROW(run.train(toy, reporter), Error);
  }
  {
    const run::InterruptGuard guard;
    const auto result =
        run.train(toy, {.resume = false, .state = {}, .on_start = [] { run::request_interrupt(); }});
    EXPECT_TRUE(result.interrupted);
    EXPECT_TRUE(result.output.empty());
    EXPECT_TRUE(result.metrics.empty());
  }
  EXPECT_EQ(run.get("adapter.gguf"), "of an earlier run");
  EXPECT_FALSE(run::newest_checkpoint(run / "state").has_value());
}

// The same by a signal from outside: SIGKILL once the first step is told of.
TEST(KilledProcess, GoesOnToTheSameBytes) {
  const ToyRun run;
  ToyDocument toy;
  toy.training = "epochs = 40\nlr = 1e-3\nctx = 64\nmicro_batch = 64\n";
  toy.rest = kCheckpointEveryStep;
  run.put("run.toml", toy.text());
  const Outcome whole = run_program(run.path(), {"train", "run.toml"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string expected = run.get("adapter.gguf");
  std::filesystem::remove_all(run / "state");
  std::filesystem::remove(run / "adapter.gguf");

  Program killed(run.path(), {"train", "run.toml"});
  ASSERT_TRUE(
      killed.wait_for([](const std::string& err) { return err.find("epoch 2:") != std::string::npos; }));
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait().code, 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(run / "adapter.gguf"));
  const Outcome resumed = run_program(run.path(), {"train", "run.toml", "--resume"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(run.get("adapter.gguf"), expected);
}

// The base is cut short under a run that has it mapped: an error, and the checkpoints stay.
TEST(LostModel, IsToldAndCheckpointsStay) {
  const ToyRun run;
  ToyDocument toy;
  toy.training = "epochs = 100000\nlr = 1e-3\nctx = 64\nmicro_batch = 64\nlr_scheduler = \"constant\"\n";
  toy.rest = kCheckpointEveryStep;
  run.put("run.toml", toy.text());
  Program running(run.path(), {"train", "run.toml"});
  ASSERT_TRUE(
      running.wait_for([](const std::string& err) { return err.find("epoch 2:") != std::string::npos; }));
  std::filesystem::resize_file(run / "model.gguf", 4096);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("made shorter"), std::string::npos) << outcome.err;
  EXPECT_TRUE(run::newest_checkpoint(run / "state").has_value());
}

TEST(InterruptedProcess, SavesAndExits130) {
  const ToyRun run;
  ToyDocument toy;
  toy.training = "epochs = 40\nlr = 1e-3\nctx = 64\nmicro_batch = 64\n";
  toy.rest = "[checkpoint]\ndirectory = \"state\"\nmode = \"steps\"\nevery_steps = 100000\n";
  run.put("run.toml", toy.text());
  const Outcome whole = run_program(run.path(), {"train", "run.toml"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::string expected = run.get("adapter.gguf");
  std::filesystem::remove_all(run / "state");

  Program stopped(run.path(), {"train", "run.toml"});
  ASSERT_TRUE(
      stopped.wait_for([](const std::string& err) { return err.find("epoch 2:") != std::string::npos; }));
  stopped.signal(SIGINT);
  const Outcome outcome = stopped.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(run.get("adapter.gguf"), expected);  // the adapter so far
  ASSERT_TRUE(run::newest_checkpoint(run / "state").has_value());
  EXPECT_EQ(run_program(run.path(), {"train", "run.toml", "--resume"}).code, 0);
  EXPECT_EQ(run.get("adapter.gguf"), expected);
}

// A full disk while a checkpoint is written: an error, the last checkpoint whole, and the run goes on from
// it.
TEST(FullDisk, LosesNothing) {
  const ToyRun whole;
  ToyDocument toy;
  toy.rest = kCheckpointEveryStep;
  const std::string expected = whole.adapter(toy);
  for (const size_t after : {size_t{0}, size_t{1000}, size_t{20000}, size_t{60000}, size_t{90000}}) {
    const ToyRun run;
    size_t written = 0;
    g_write_fault = [&](size_t bytes) {
      written += bytes;
      if (written > after) fail(ErrorKind::io, "no space left on device");
    };
    EXPECT_THROW(run.train(toy), Error);
    g_write_fault = {};
    run::TrainOptions options;
    options.resume = run::newest_checkpoint(run / "state").has_value();
    run.train(toy, options);
    EXPECT_EQ(run.get("adapter.gguf"), expected) << "disk full after " << after << " bytes";
  }
}

// What may and may not change between a checkpoint and its resumption.
TEST(Resume, RefusesAnotherProblemAndNamesIt) {
  const ToyRun run;
  ToyDocument toy;
  toy.rest = kCheckpointEveryStep;
  run.train(toy);
  const run::TrainOptions resume{.resume = true, .state = {}, .on_start = {}};
  const auto refusal = [&](const ToyDocument& changed) -> std::string {
    try {
      run.train(changed, resume);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return "";
  };
  ToyDocument changed = toy;
  changed.training = "epochs = 2\nlr = 2e-2\nctx = 128\nmicro_batch = 128\nmax_grad_norm = 1.0\n";
  EXPECT_NE(refusal(changed).find("training.lr"), std::string::npos) << refusal(changed);
  EXPECT_NE(refusal(changed).find("init_adapter"), std::string::npos) << refusal(changed);
  changed.training = toy.training + "threads = 1\nmax_gpu_duty_cycle = 0.5\n";
  EXPECT_EQ(refusal(changed), "");
  changed.training =
      "epochs = 2\nlr = 1e-2\nctx = 128\nmicro_batch = 64\ngradient_accumulation = 2\nmax_grad_norm = 1.0\n"
      "gradient_checkpointing = true\n";
  EXPECT_EQ(refusal(changed), "");

  run.put("train.jsonl", chat_lines(12).replace(40, 1, "z"));
  EXPECT_NE(refusal(toy).find("sft.data"), std::string::npos) << refusal(toy);
  run.put("train.jsonl", chat_lines(12));
  EXPECT_EQ(refusal(toy), "");
  ToySpec other;
  other.seed = 2;
  write_toy_model(run / "model.gguf", other);
  EXPECT_NE(refusal(toy).find("model"), std::string::npos) << refusal(toy);
}

}  // namespace
}  // namespace retro::test
