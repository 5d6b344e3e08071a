// What single commands show and take, as their user sees it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/e2e/toy_run.h"
#include "tests/support/program.h"

namespace retro::test {
namespace {

TEST(Chat, NamesTheContextThatIsTooLong) {
  const ToyRun run;
  for (const char* ctx : {"257", "4294967296", "4294967808"}) {
    const Outcome outcome = run_program(run.path(), {"chat", "model.gguf", "--ctx", ctx});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(fmt::format("--ctx {}: the model's context is 256", ctx)), std::string::npos)
        << outcome.err;
  }
}

TEST(Chat, AnswersEachLineOfItsInput) {
  const ToyRun run;
  const Outcome outcome =
      run_program(run.path(), {"chat", "model.gguf", "--temp", "0", "--max-new-tokens", "1"},
                  "one\n\n/reset\n/rest\ntwo");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2) << outcome.out;
  EXPECT_NE(outcome.err.find("(a new conversation)"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("no command /rest"), std::string::npos) << outcome.err;
}

// It waits for a line then, and no signal ends that wait by itself.
TEST(Chat, EndsByASignalWhileItsInputIsIdle) {
  for (const int number : {SIGTERM, SIGINT}) {
    const ToyRun run;
    const auto input = run / ".stdin";
    ASSERT_EQ(::mkfifo(input.c_str(), 0600), 0);
    const int held = ::open(input.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(held, 0);
    Program program(run.path(), {"chat", "model.gguf"}, "/reset\n");
    EXPECT_TRUE(program.wait_for([](const std::string& err) { return err.find("(a new") != err.npos; }));
    program.signal(number);
    EXPECT_EQ(program.wait().code, 130);
    ::close(held);
  }
}

TEST(Preview, ShowsRecordsThatDoNotSteerTheTerminal) {
  const ToyRun run({}, chat_line({"a\\u001b]0;name\\u0007b\\u009b2Jc\\td", "größer\\ne"}));
  run.put("run.toml", ToyDocument{}.text());
  for (const char* ids : {"--records=3", "--ids"}) {
    const Outcome outcome = run_program(run.path(), {"preview", "run.toml", ids});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find_first_of("\x1b\x07\r"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("\u009b"), std::string::npos) << outcome.out;
  }
  const Outcome outcome = run_program(run.path(), {"preview", "run.toml"});
  EXPECT_NE(outcome.out.find("a?]0;name?b?2Jc\td"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("größer\ne"), std::string::npos) << outcome.out;
}

// What the last line says is what the run then trains.
TEST(Preview, CountsTheTokensOfRecordsThatAreCut) {
  const ToyRun run({}, chat_line({"q", std::string(200, 'y')}) + chat_lines(4));
  std::map<std::string, int64_t> trained;
  for (const char* overlong : {"truncate", "drop"}) {
    ToyDocument toy;
    toy.sft = fmt::format("overlong = \"{}\"\n", overlong);
    toy.training = "ctx = 64\nmicro_batch = 64\n";
    run.put("run.toml", toy.text());
    const Outcome preview = run_program(run.path(), {"preview", "run.toml"});
    const Outcome bench = run_program(run.path(), {"bench", "run.toml", "--json", "-"});
    ASSERT_EQ(bench.code, 0) << bench.err;
    const auto tokens = nlohmann::json::parse(bench.out).at("tokens").get<int64_t>();
    EXPECT_NE(preview.out.find(fmt::format("an epoch trains {} tokens", tokens)), std::string::npos)
        << tokens << "\n"
        << preview.out;
    trained[overlong] = tokens;
  }
  EXPECT_GT(trained["truncate"], trained["drop"]);
}

TEST(Bench, ReadsTheTrainingDataAsTheDocumentSays) {
  const ToyRun run;
  ToyDocument toy;
  toy.sft = "data_format = \"text\"\n";
  run.put("run.toml", toy.text());
  const auto bench = [&](const char* format) {
    const Outcome outcome = run_program(run.path(), {"bench", "run.toml", "--json", "-", "--format", format});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(bench("auto"), bench("text"));
  EXPECT_NE(bench("auto"), bench("jsonl"));
}

TEST(Plan, WritesNothingIntoADocumentItWouldBreak) {
  // Wide enough that a lever saves far more than the program's own memory varies between two calls.
  ToySpec wide;
  wide.ffn = 4096;
  const ToyRun run(wide);
  const std::string text = "training = { ctx = 256, micro_batch = 256 }\n" + ToyDocument{}.text();
  const std::string inlined = text.substr(0, text.find("[training]"));
  run.put("run.toml", inlined);
  const Outcome largest = run_program(run.path(), {"plan", "run.toml", "--json", "-"});
  ASSERT_EQ(largest.code, 0) << largest.err;
  const auto bytes = nlohmann::json::parse(largest.out).at("total_bytes").get<int64_t>();
  const std::vector<std::string> words = {"plan", "run.toml", "--write", "--memory",
                                          std::to_string(bytes - (4 << 20))};
  const Outcome refused = run_program(run.path(), words);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("set by hand: "), std::string::npos) << refused.err;
  EXPECT_EQ(run.get("run.toml"), inlined);

  // Through a link, which stays one.
  run.put("real.toml",
          inlined.substr(inlined.find('\n') + 1) + "[ training ]\nctx = 256\nmicro_batch = 256\n");
  std::filesystem::remove(run / "run.toml");
  std::filesystem::create_symlink("real.toml", run / "run.toml");
  EXPECT_EQ(run_program(run.path(), words).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(run / "run.toml"));
  EXPECT_EQ(run_program(run.path(), {"plan", "run.toml", "--memory", words.back()}).code, 0);
}

}  // namespace
}  // namespace retro::test
