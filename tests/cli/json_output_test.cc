// Where results go: into the file that was named and into no other, and never lost without a word.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/e2e/toy_run.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

namespace fs = std::filesystem;

bool is_json(const std::string& text) {
  return nlohmann::json::accept(text);
}

TEST(JsonFile, ReplacesNoFileOfTheCommand) {
  const ToyRun run;
  ToyDocument toy;
  toy.rest = "[evaluation]\ndata = \"held.jsonl\"\n[metrics]\njsonl = \"metrics.jsonl\"\n";
  run.put("run.toml", toy.text());
  for (const char* name : {"held.jsonl", "other.jsonl"}) run.put(name, chat_lines(2));
  run.put("start.gguf", "an adapter");
  fs::create_symlink("model.gguf", run / "link.gguf");
  fs::create_hard_link(run / "train.jsonl", run / "hard.jsonl");
  const std::vector<std::vector<std::string>> commands = {
      {"train", "run.toml", "--json", "run.toml"},
      {"train", "run.toml", "--json", "train.jsonl"},
      {"train", "run.toml", "--json", "hard.jsonl"},
      {"train", "run.toml", "--json", "adapter.gguf"},
      {"train", "run.toml", "--json", "./link.gguf"},
      {"train", "run.toml", "--json", "metrics.jsonl"},
      {"plan", "run.toml", "--json", "./run.toml"},
      {"plan", "run.toml", "--json", "held.jsonl"},
      {"bench", "run.toml", "--data", "other.jsonl", "--json", "other.jsonl"},
      {"bench", "run.toml", "--adapter", "start.gguf", "--json", "start.gguf"},
      {"inspect", "--model", "model.gguf", "--json", "model.gguf"},
      {"inspect", "--model", "model.gguf", "--json", "."},
      {"inspect", "--model", "model.gguf", "--json", ""},
  };
  std::map<std::string, std::string> before;
  for (const auto& file : fs::directory_iterator(run.path()))
    before[file.path().filename()] = run.get(file.path().filename());
  for (const auto& words : commands) {
    const Outcome outcome = run_program(run.path(), words);
    EXPECT_EQ(outcome.code, 2) << words[0] << " " << words.back() << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("--json"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  for (const auto& [name, bytes] : before) EXPECT_EQ(run.get(name), bytes) << name;
  EXPECT_FALSE(fs::exists(run / "adapter.gguf"));
}

TEST(JsonFile, GoesWhereALinkLeads) {
  const ToyRun run;
  fs::create_directory(run / "results");
  fs::create_symlink("results/real.json", run / "link.json");
  for (int i = 0; i < 2; ++i) {  // a file that is not there yet, and one that is
    ASSERT_EQ(run_program(run.path(), {"inspect", "--model", "model.gguf", "--json", "link.json"}).code, 0);
    EXPECT_TRUE(fs::is_symlink(run / "link.json"));
    EXPECT_TRUE(is_json(run.get("results/real.json")));
  }
}

TEST(JsonFile, MayBeAPipe) {
  const ToyRun run;
  const fs::path pipe = run / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(run_program(run.path(), {"inspect", "--model", "model.gguf", "--json", "pipe"}).code, 0);
  std::string text(1 << 16, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(::read(reader, text.data(), text.size()), 0)));
  ::close(reader);
  EXPECT_TRUE(is_json(text)) << text;
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(JsonFile, OfStandardOutputHasItForItself) {
  const ToyRun run;
  for (const char* name : {"-", "/dev/stdout"}) {
    const Outcome outcome = run_program(run.path(), {"inspect", "--model", "model.gguf", "--json", name});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(is_json(outcome.out)) << outcome.out;
  }
}

// Runs the program with a standard output that takes nothing.
Outcome on_a_full_disk(const ToyRun& run, const std::vector<std::string>& words) {
  fs::create_symlink("/dev/full", run / ".stdout");
  Program program(run.path(), words);
  program.wait_for([](const std::string&) { return false; });
  fs::remove(run / ".stdout");
  run.put(".stdout", "");
  const Outcome outcome = program.wait();
  fs::remove(run / ".stdout");
  return outcome;
}

TEST(Results, ThatAreLostAreNoSuccess) {
  const ToyRun run;
  run.put("run.toml", ToyDocument{}.text());
  const std::vector<std::vector<std::string>> commands = {
      {"preview", "run.toml"},
      {"preview", "run.toml", "--records", "12", "--ids"},
      {"plan", "run.toml", "--json", "-"},
      {"plan", "run.toml"},
      {"inspect", "--model", "model.gguf"},
      {"new", "sft"},
      {"--help"},
  };
  for (const auto& words : commands) {
    const Outcome outcome = on_a_full_disk(run, words);
    EXPECT_EQ(outcome.code, 1) << words[0];
    EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << words[0] << ": " << outcome.err;
  }
  const Outcome file = run_program(run.path(), {"plan", "run.toml", "--json", "/dev/full"});
  EXPECT_EQ(file.code, 1);
  EXPECT_NE(file.err.find("/dev/full"), std::string::npos) << file.err;
}

// As of `train run.toml 2>&1 | head -1`.
TEST(Reports, ThatNobodyReadsStopNoRun) {
  const ToyRun run;
  run.put("run.toml", ToyDocument{}.text());
  const fs::path pipe = run / ".stderr";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  Program program(run.path(), {"train", "run.toml"});
  std::string first(1, '\0');
  EXPECT_EQ(::read(reader, first.data(), 1), 1);
  ::close(reader);
  fs::remove(pipe);
  run.put(".stderr", "");
  EXPECT_EQ(program.wait().code, 0);
  EXPECT_TRUE(fs::exists(run / "adapter.gguf"));
}

}  // namespace
}  // namespace retro::test
