// A bar on a terminal that never mixes with lines nor outgrows the window, and few plain lines elsewhere.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"

namespace retro::cli {
namespace {

/// A terminal with a clock that a test sets.
struct FakeScreen {
  Screen screen(bool interactive, bool color = false) {
    Screen made;
    made.interactive = interactive;
    made.color = color;
    made.columns = [this] { return columns; };
    made.seconds = [this] { return seconds; };
    made.write = [this](std::string_view text) {
      written += text;
      ++writes;
    };
    return made;
  }

  /// What a terminal shows: its lines, the last one being where the cursor stands.
  std::vector<std::string> shown() const {
    std::vector<std::string> lines(1);
    for (size_t i = 0; i < written.size(); ++i) {
      if (written.compare(i, 4, "\r\x1b[K") == 0) {
        lines.back().clear();
        i += 3;
      } else if (written[i] == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += written[i];
      }
    }
    return lines;
  }

  std::string written;
  int writes = 0;
  int columns = 80;
  double seconds = 1000;
};

TEST(Progress, ABarShowsRateAndTimeLeft) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(true));
  for (int step = 0; step <= 40; ++step) {
    reporter.progress("training", step, 100, "loss 2.31");
    if (step < 40) fake.seconds += 0.5;
  }
  const auto shown = fake.shown();
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0], "training  [==========>              ]  40/100  40%  2.0/s  0:30 left  loss 2.31");
}

TEST(Progress, IsRedrawnAtMostTenTimesASecond) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(true));
  for (int i = 0; i < 5000; ++i) {
    reporter.progress("load", i, 10000, "");
    fake.seconds += 0.001;
  }
  EXPECT_LE(fake.writes, 51);
  EXPECT_GE(fake.writes, 45);
}

TEST(Progress, LinesTakeTheBarsPlaceAndItComesBackBelow) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(true));
  reporter.progress("training", 1, 4, "");
  reporter.line("epoch 1: loss 2.0");
  reporter.warn("the disk is nearly full");
  log_warn("a log line");
  const auto shown = fake.shown();
  ASSERT_EQ(shown.size(), 4U);
  EXPECT_EQ(shown[0], "epoch 1: loss 2.0");
  EXPECT_EQ(shown[1], "warning: the disk is nearly full");
  EXPECT_TRUE(shown[2].ends_with("warning a log line")) << shown[2];
  EXPECT_EQ(shown[3].rfind("training  [", 0), 0U) << shown[3];
  reporter.progress("training", 4, 4, "");
  reporter.note("written");
  EXPECT_EQ(fake.shown()[3], "written");
  EXPECT_EQ(fake.shown()[4], "");
}

TEST(Progress, ThePhaseThatBeginsReplacesTheOneBefore) {
  FakeScreen fake;
  {
    ProgressReporter reporter(fake.screen(true));
    reporter.progress("load", 1, 4, "");
    reporter.progress("training", 0, 4, "");
    EXPECT_EQ(fake.shown()[0].rfind("training", 0), 0U);
    reporter.clear();
    EXPECT_EQ(fake.shown()[0], "");
    fake.seconds += 1;
    reporter.progress("training", 1, 4, "");
  }
  EXPECT_EQ(fake.shown(), std::vector<std::string>{""});
}

TEST(Progress, NeverOutgrowsTheWindow) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(true));
  for (fake.columns = 0; fake.columns < 130; ++fake.columns) {
    fake.seconds += 1;
    reporter.progress("training", fake.columns, 131, "loss 2.31 größer als zuvor, 120 tokens/s");
    const std::string line = fake.shown()[0];
    const auto width = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_LE(width, std::max(fake.columns - 1, 1)) << line;
    EXPECT_TRUE(line.empty() || (line.back() & 0xc0) != 0xc0) << "cut inside a character";
  }
}

TEST(Progress, ElsewhereALineAfterTwoSecondsAndThenEveryFive) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(false));
  for (int i = 0; i <= 200; ++i) {
    reporter.progress("training", i, 200, "loss 1");
    if (i < 200) fake.seconds += 0.1;
  }
  EXPECT_EQ(fake.written,
            "training  20/200  10%  10.0/s  0:18 left  loss 1\n"
            "training  70/200  35%  10.0/s  0:13 left  loss 1\n"
            "training  120/200  60%  10.0/s  0:08 left  loss 1\n"
            "training  170/200  85%  10.0/s  0:03 left  loss 1\n"
            "training  200/200  100%  10.0/s  in 0:20  loss 1\n");
}

TEST(Progress, ElsewhereAShortPhaseSaysNothing) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(false));
  for (int i = 0; i <= 10; ++i) {
    reporter.progress("load", i, 10, "");
    fake.seconds += 0.1;
  }
  EXPECT_EQ(fake.written, "");
}

TEST(Progress, WithoutATotalItCounts) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(true));
  reporter.progress("reading", 0, 0, "");
  fake.seconds += 2;
  reporter.progress("reading", 3'000'000, 0, "");
  EXPECT_EQ(fake.shown()[0], "reading  3.0M  1.5M/s");
}

TEST(Progress, ColorOnlyWhereItIsWanted) {
  FakeScreen plain, colored;
  ProgressReporter(plain.screen(true)).warn("w");
  ProgressReporter(colored.screen(true, true)).warn("w");
  EXPECT_EQ(plain.written, "warning: w\n");
  EXPECT_EQ(colored.written, "\x1b[33mwarning:\x1b[0m w\n");
}

TEST(Progress, TextsFromOutsideDoNotSteerTheTerminal) {
  FakeScreen fake;
  ProgressReporter reporter(fake.screen(true));
  reporter.note("a\x1b[2Jb\rc\u009b2Jd\x7f ü\té");
  EXPECT_EQ(fake.written, "a?[2Jb?c?2Jd? ü\té\n");
}

TEST(Rate, FollowsTheLastHalfMinute) {
  RateMeter meter;
  EXPECT_FALSE(meter.rate());
  meter.add(0, 0);
  EXPECT_FALSE(meter.rate());
  for (int i = 1; i <= 100; ++i) meter.add(i, i);
  EXPECT_DOUBLE_EQ(*meter.rate(), 1.0);
  for (int i = 1; i <= 40; ++i) meter.add(100 + i, 100 + 10 * i);
  EXPECT_DOUBLE_EQ(*meter.rate(), 10.0);
  meter.add(200, 3);  // begun anew
  EXPECT_FALSE(meter.rate());
}

TEST(Rate, StepsSlowerThanTheWindowHaveOne) {
  RateMeter meter;
  for (int i = 0; i < 5; ++i) meter.add(i * 100.0, i);
  EXPECT_DOUBLE_EQ(*meter.rate(), 0.01);
}

TEST(Rate, Formats) {
  EXPECT_EQ(format_rate(3.14), "3.1/s");
  EXPECT_EQ(format_rate(0.4), "2.5 s each");
  EXPECT_EQ(format_rate(1234.4), "1234/s");
  EXPECT_EQ(format_rate(2.5e9), "2.5G/s");
  EXPECT_EQ(format_duration(58.4), "0:58");
  EXPECT_EQ(format_duration(725), "12:05");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(76 * 3600), "3 d 4 h");
  EXPECT_EQ(format_duration(-1), "0:00");
  EXPECT_EQ(format_count(98304), "98304");
  EXPECT_EQ(format_count(4'200'000), "4.2M");
  EXPECT_EQ(format_count(268'000'000), "268M");
  EXPECT_EQ(format_count(1'100'000'000), "1.1G");
}

}  // namespace
}  // namespace retro::cli
