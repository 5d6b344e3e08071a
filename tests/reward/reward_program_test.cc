// Rewards come from a program that may do anything; what comes of it is a reward, or one clear error.
#include "reward/reward_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/temp_folder.h"

namespace retro::reward {
namespace {

using Command = std::vector<std::string>;

std::vector<RewardRequest> requests(size_t count, size_t padding = 0) {
  std::vector<RewardRequest> made;
  for (size_t i = 0; i < count; ++i) {
    made.push_back({"count \"them\"\n" + std::string(padding, 'p'), std::string(i, 'a') + "."});
  }
  return made;
}

RewardOptions options(Command words, RewardMode mode = RewardMode::persistent, double seconds = 20) {
  words.insert(words.begin(), RETRO_REWARD_HELPER);
  RewardOptions made;
  made.command = std::move(words);
  made.mode = mode;
  made.timeout_seconds = seconds;
  return made;
}

/// What one batch of `count` requests ends in; the program is gone afterwards.
Error failure(RewardOptions given, size_t count = 4, size_t padding = 0) {
  RewardProgram program(std::move(given));
  try {
    program.score(requests(count, padding));
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "nothing was wrong");
}

void expect_failure(RewardOptions given, const std::vector<std::string>& fragments, size_t count = 4,
                    size_t padding = 0) {
  const Error error = failure(std::move(given), count, padding);
  EXPECT_EQ(error.kind(), ErrorKind::protocol);
  for (const std::string& fragment : fragments) {
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos)
        << error.what() << "\nlacks: " << fragment;
  }
}

/// A named pipe that the program and what it forks hold open.
class Fifo {
 public:
  Fifo() : path_(folder_ / "fifo") {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    fd_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~Fifo() { ::close(fd_); }
  std::string path() const { return path_.string(); }
  /// Waits until nobody holds it who held it.
  bool everyone_gone() const {
    constexpr int kMilliseconds = 10000;
    pollfd polled{fd_, POLLIN, 0};
    return ::poll(&polled, 1, kMilliseconds) == 1 && (polled.revents & POLLHUP) != 0;
  }

 private:
  support::TempFolder folder_;
  std::filesystem::path path_;
  int fd_ = -1;
};

TEST(RewardProgram, OneProcessScoresBatchAfterBatchInOrder) {
  RewardProgram program(options({"good"}));
  for (const size_t count : {size_t{3}, size_t{1}, size_t{200}}) {
    const std::vector<Reward> rewards = program.score(requests(count));
    ASSERT_EQ(rewards.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(rewards[i].reward, static_cast<double>(i));
  }
  EXPECT_TRUE(program.score({}).empty());
  program.finish();
}

TEST(RewardProgram, OneshotRunsAProcessABatch) {
  RewardProgram program(options({"oneshot", ""}, RewardMode::oneshot));
  for (int batch = 0; batch < 3; ++batch) {
    const std::vector<Reward> rewards = program.score(requests(5));
    ASSERT_EQ(rewards.size(), 5U);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(rewards[i].reward, static_cast<double>(i));
  }
}

TEST(RewardProgram, IsRunDirectlyInTheWorkingDirectoryWithItsArgumentsAsTheyAre) {
  // The shell runs because it is named; "$1" comes to it with its spaces and characters.
  const std::string script =
      "test \"$1\" = 'two words; $HOME' || exit 5; test \"$PWD\" = \"$2\" || exit 6; "
      "while read -r line; do echo '{\"reward\": -2.5e-1}'; done";
  const std::string here = std::filesystem::current_path().string();
  RewardOptions made;
  made.command = {"sh", "-c", script, "name", "two words; $HOME", here};
  made.mode = RewardMode::oneshot;
  RewardProgram program(made);
  const auto rewards = program.score(requests(2));
  ASSERT_EQ(rewards.size(), 2U);
  EXPECT_EQ(rewards[1].reward, -0.25);
}

TEST(RewardProgram, AProgramThatIsNotThereIsRefusedBeforeAnythingStarts) {
  const support::TempFolder folder;
  std::ofstream(folder / "plain") << "text";
  const std::vector<std::pair<Command, std::string>> cases = {
      {{}, "the command is empty"},
      {{""}, "is no program"},
      {{"no-such-program-anywhere"}, "'no-such-program-anywhere' is no program in PATH"},
      {{(folder / "missing").string()}, "does not exist"},
      {{(folder / "plain").string()}, "chmod +x"},
      {{folder.path().string()}, "no file that can be executed"},
  };
  for (const auto& [command, fragment] : cases) {
    try {
      RewardOptions made;
      made.command = command;
      RewardProgram program(made);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    }
  }
  // Found, but no program after all: a failure of the run, with the way out.
  std::ofstream(folder / "script") << "echo no interpreter line\n";
  std::filesystem::permissions(folder / "script", std::filesystem::perms::owner_all);
  RewardOptions made;
  made.command = {(folder / "script").string()};
  expect_failure(made, {"cannot start", "#!/bin/sh"});
}

TEST(RewardProgram, AnAnswerWithoutAFiniteRewardEndsTheRun) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"\"reward\": NaN", {"answer 1 of 4", "{\"reward\": NaN", "not JSON", "finite number"}},
      {"\"reward\": Infinity", {"not JSON", "JSON has no NaN and no Infinity"}},
      {"\"reward\": -Infinity", {"not JSON", "finite number"}},
      {"\"reward\": null", {"has \"reward\": null; it must be a finite number, as 1.0"}},
      {"\"reward\": \"1\"", {"has \"reward\": \"1\"; it must be a finite number"}},
      {"\"reward\": true", {"has \"reward\": true; it must be a finite number"}},
      {"\"reward\": [1]", {"has \"reward\": [1]"}},
      {"\"reward\": 1e999", {"batch 0, answer 1 of 4"}},
      {"\"rewrad\": 1", {"has no \"reward\"; an answer is {\"reward\": 1.0}"}},
      {"\"reward\": 1, \"reward\": 2", {"\"reward\"", "twice"}},
      {"\"reward\": 1, \"judge_weight\": 1", {"judge_weight", "no judge"}},
  };
  for (const auto& [answer, fragments] : cases) expect_failure(options({"answer", answer}), fragments);
}

TEST(RewardProgram, AJudgeWeightIsTakenWhereThereIsAJudge) {
  RewardOptions judged = options({"answer", "\"reward\": 2, \"judge_weight\": 0.5, \"note\": [1]"});
  judged.judged = true;
  RewardProgram program(judged);
  const auto rewards = program.score(requests(1));
  EXPECT_EQ(rewards[0].reward, 2.0);
  EXPECT_EQ(rewards[0].judge_weight, 0.5);
  RewardOptions negative = options({"answer", "\"reward\": 2, \"judge_weight\": -1"});
  negative.judged = true;
  expect_failure(negative, {"judge_weight", "at least 0"});
}

TEST(RewardProgram, CountAndOrderAreChecked) {
  expect_failure(options({"few"}), {"answer 2 of 4", "\"_retrograd_index\": 2 where 1 is due"});
  expect_failure(options({"few"}), {"answer 2 of 2", "ends the batch, but an answer is still due"}, 2);
  expect_failure(options({"many"}), {"answer 3 of 4", "\"_retrograd_index\": 1 where 2 is due"});
  expect_failure(options({"many"}), {"end of batch 0", "behind the last answer"}, 2);
  expect_failure(options({"swapped"}), {"answer 1 of 4", "\"_retrograd_index\": 1 where 0 is due"});
  expect_failure(options({"answer", "\"reward\": 1, \"_retrograd_batch\": 0"}), {"twice"});
  const RewardMode oneshot = RewardMode::oneshot;
  expect_failure(options({"oneshot", "few"}, oneshot), {"answer 4 of 4", "ended with exit status 0"});
  expect_failure(options({"oneshot", "many"}, oneshot), {"end of batch 0", "comes behind the last answer"});
}

TEST(RewardProgram, ALineBehindTheBatchBelongsToNone) {
  RewardProgram program(options({"many_at_end"}));
  // Written in one piece with the batch's end, so it is there with it, or else with the next batch.
  EXPECT_THROW(
      {
        program.score(requests(2));
        program.score(requests(2));
      },
      Error);
}

TEST(RewardProgram, ACrashIsToldWithStatusAndLastWords) {
  expect_failure(options({"crash", "0"}),
                 {"answer 1 of 4", "ended with exit status 3", "stderr:\nboom at 0"});
  expect_failure(options({"crash", "2"}), {"answer 3 of 4", "exit status 3", "boom at 2"});
  expect_failure(options({"abort", "1"}), {"answer 2 of 4", "signal 6"});
  expect_failure(options({"oneshot", "fails"}, RewardMode::oneshot),
                 {"exit status 4", "graded, but unhappy"});
  RewardOptions no_reader;
  no_reader.command = {"true"};
  expect_failure(no_reader, {"greeting", "ended with exit status 0", "wrote nothing to stderr"}, 4, 1 << 20);
}

TEST(RewardProgram, OneThatHangsIsKilledWhenItsTimeIsUp) {
  expect_failure(options({"hang", "2"}, RewardMode::persistent, 0.3),
                 {"answer 3 of 4", "no answer within reward_timeout_seconds = 0.3", "flush"});
  RewardOptions silent;  // never answers the greeting: the start counts as well
  silent.command = {"sleep", "1000"};
  silent.timeout_seconds = 0.2;
  expect_failure(silent, {"greeting", "reward_timeout_seconds = 0.2"});
  expect_failure(options({"oneshot", "stays"}, RewardMode::oneshot, 0.3),
                 {"end of batch 0", "still ran after reward_timeout_seconds = 0.3"});
}

TEST(RewardProgram, GarbageAndEndlessLinesAreRefused) {
  expect_failure(options({"garbage"}), {"answer 1 of 4", "its line `score: very  good", "is not JSON"});
  expect_failure(options({"long"}), {"answer 1 of 4", "longer than 8388608 bytes"});
  expect_failure(options({"endless"}), {"answer 1 of 4", "longer than 8388608 bytes"});
  RewardOptions yes;
  yes.command = {"yes"};
  yes.mode = RewardMode::oneshot;
  expect_failure(yes, {"its line `y` is not JSON"});
}

TEST(RewardProgram, TheGreetingIsChecked) {
  expect_failure(options({"greeting", "hello"}), {"greeting", "is not JSON"});
  expect_failure(options({"greeting", "{}"}), {"retrograd-reward/1", "oneshot"});
  expect_failure(options({"greeting", "{\"protocol\":\"retrograd-reward/2\"}"}),
                 {"with protocol \"retrograd-reward/2\""});
  RewardProgram spaced(options({"greeting", "{ \"protocol\" : \"retrograd-reward/1\", \"name\": \"x\" }"}));
  EXPECT_EQ(spaced.score(requests(2)).size(), 2U);
}

TEST(RewardProgram, NeitherSideWaitsForTheOtherForEver) {
  // Requests and answers far beyond what pipes hold, and a megabyte of stderr before each answer.
  RewardProgram wide(options({"wide"}));
  EXPECT_EQ(wide.score(requests(64, 1 << 17)).size(), 64U);
  RewardProgram noisy(options({"stderr"}));
  EXPECT_EQ(noisy.score(requests(4, 1 << 17)).size(), 4U);
}

TEST(RewardProgram, OnlyTheEndOfALongStderrIsKept) {
  const Error error = failure(options({"greeting", "{}", ""}));
  EXPECT_EQ(error.kind(), ErrorKind::protocol);
  RewardOptions loud;
  loud.command = {"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' e >&2; echo last words >&2; exit 7"};
  const Error told = failure(loud);
  const std::string text = told.what();
  EXPECT_LT(text.size(), 5000U);
  EXPECT_TRUE(text.ends_with("last words")) << text.substr(text.size() - 100);
  EXPECT_NE(text.find("exit status 7"), std::string::npos);
}

TEST(RewardProgram, ClosingItsInputEarlyEndsTheRunAtOnce) {
  expect_failure(options({"close_stdin"}), {"closed its standard input", "no more for me"}, 8, 1 << 17);
}

TEST(RewardProgram, OneshotMayAnswerWithoutReadingItAll) {
  RewardOptions made;
  made.command = {"sh", "-c", "echo '{\"reward\": 1}'; echo '{\"reward\": 2}'"};
  made.mode = RewardMode::oneshot;
  RewardProgram program(made);
  const auto rewards = program.score(requests(2, 1 << 20));
  ASSERT_EQ(rewards.size(), 2U);
  EXPECT_EQ(rewards[1].reward, 2.0);
}

TEST(RewardProgram, NoProcessIsLeftBehind) {
  struct Case {
    Command words;
    bool fails;
  };
  for (const auto& [words, fails] :
       {Case{{"hang", "ignore"}, false}, Case{{"good", "fork"}, false}, Case{{"stays", "ignore"}, false},
        Case{{"stays", "fork"}, false}, Case{{"garbage", "fork"}, true},
        Case{{"close_stdin", "ignore"}, true}}) {
    const Fifo fifo;
    Command command = words;
    command.push_back(fifo.path());
    RewardProgram program(options(command));
    if (fails) {
      EXPECT_THROW(program.score(requests(4, 1 << 17)), Error);
    } else {
      program.score(requests(4));
      program.finish();
    }
    EXPECT_TRUE(fifo.everyone_gone()) << words[0] << " " << words[1];
  }
}

TEST(RewardProgram, AnExitIsSeenThoughChildrenHoldItsOutput) {
  RewardOptions made;
  made.command = {"sh", "-c", "sleep 1000 & echo 'left a child' >&2; exit 3"};
  expect_failure(made, {"exit status 3", "left a child"});
  made.mode = RewardMode::oneshot;
  expect_failure(made, {"exit status 3", "left a child"});
}

TEST(RewardProgram, AnInterruptEndsTheWait) {
  RewardOptions hanging = options({"hang", "1"}, RewardMode::persistent, 1000);
  int asked = 0;
  hanging.interrupted = [&] { return ++asked > 3; };
  EXPECT_EQ(failure(hanging).kind(), ErrorKind::interrupted);
}

TEST(RewardProgram, AnswersThatWereGivenBeforeAFailureAreNotReturned) {
  RewardProgram program(options({"crash", "3"}));
  EXPECT_EQ(program.score(requests(3)).size(), 3U);
  EXPECT_THROW(program.score(requests(4)), Error);
}

}  // namespace
}  // namespace retro::reward
