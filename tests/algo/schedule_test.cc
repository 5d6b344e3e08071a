// Learning rates against their formulas with std::cos.
#include "algo/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace retro::algo {
namespace {

constexpr double kLr = 3e-4;

// Linear from lr/w to lr over the first w steps, then from lr towards 0, which the step after the last has.
double expected(ScheduleKind kind, int64_t warmup, int64_t horizon, int64_t step) {
  if (step < warmup) return kLr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(horizon - warmup);
  if (kind == ScheduleKind::linear) return kLr * (1 - progress);
  if (kind == ScheduleKind::cosine) return kLr * (1 + std::cos(std::numbers::pi * progress)) / 2;
  return kLr;
}

TEST(Schedule, FollowsItsFormula) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine}) {
    for (const int64_t horizon : {1, 2, 10, 1000}) {
      for (const int64_t warmup : {int64_t{0}, int64_t{1}, horizon / 3, horizon - 1}) {
        if (warmup >= horizon) continue;
        const Schedule schedule{kind, kLr, warmup, horizon};
        for (int64_t step = 0; step < horizon; ++step) {
          EXPECT_NEAR(schedule.rate(step), expected(kind, warmup, horizon, step), 1e-14 * kLr)
              << static_cast<int>(kind) << ' ' << warmup << ' ' << horizon << ' ' << step;
        }
      }
    }
  }
}

TEST(Schedule, WarmsUpToTheWholeRateAndDecaysToAlmostNothing) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine}) {
    const Schedule schedule{kind, kLr, 10, 1000};
    EXPECT_EQ(schedule.rate(0), kLr / 10);
    EXPECT_EQ(schedule.rate(9), kLr);
    EXPECT_EQ(schedule.rate(10), kLr);
    for (int64_t step = 11; step < 1000; ++step) {
      EXPECT_LE(schedule.rate(step), schedule.rate(step - 1));
      EXPECT_GT(schedule.rate(step), 0);
    }
  }
  EXPECT_EQ((Schedule{ScheduleKind::constant, kLr, 10, 1000}.rate(999)), kLr);
  EXPECT_LT((Schedule{ScheduleKind::linear, kLr, 10, 1000}.rate(999)), 2e-3 * kLr);
  EXPECT_LT((Schedule{ScheduleKind::cosine, kLr, 10, 1000}.rate(999)), 1e-5 * kLr);
}

}  // namespace
}  // namespace retro::algo
