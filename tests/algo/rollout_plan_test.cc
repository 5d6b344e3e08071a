// Orders, seeds, packing, the KL coefficient and stalls: functions of counters.
#include "algo/rollout_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "algo/kl_controller.h"
#include "algo/stall.h"

namespace retro::algo {
namespace {

TEST(Seeds, DifferByPositionAndMemberAndDependOnNothingElse) {
  std::set<uint64_t> seen;
  for (int64_t position = 0; position < 50; ++position) {
    for (int64_t member = 0; member < 20; ++member) seen.insert(completion_seed(7, position, member));
    seen.insert(evaluation_seed(7, position));
  }
  EXPECT_EQ(seen.size(), 50U * 21U);
  EXPECT_EQ(completion_seed(7, 3, 4), completion_seed(7, 3, 4));
  EXPECT_NE(completion_seed(7, 3, 4), completion_seed(8, 3, 4));
  EXPECT_NE(evaluation_seed(7, 3), evaluation_seed(8, 3));
}

TEST(StepOrder, IsAPermutationOfItsOwnForEachPassOfEachUpdate) {
  std::set<std::vector<size_t>> orders;
  for (int64_t update = 0; update < 4; ++update) {
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<size_t> order = step_order(20, 42, update, epoch);
      EXPECT_EQ(order, step_order(20, 42, update, epoch));
      orders.insert(order);
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
    }
  }
  EXPECT_EQ(orders.size(), 16U);
  EXPECT_TRUE(step_order(0, 42, 0, 0).empty());
}

TEST(PackCompletions, TakesWholeOnesInARowAsManyAsFit) {
  const std::vector<int64_t> lengths = {4, 5, 3, 10, 1, 1};
  const std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(pack_completions(lengths, order, 10),
            (std::vector<std::vector<size_t>>{{0, 1}, {2}, {3}, {4, 5}}));
  const std::vector<size_t> turned = {5, 0, 1, 3, 2, 4};
  EXPECT_EQ(pack_completions(lengths, turned, 10),
            (std::vector<std::vector<size_t>>{{5, 0, 1}, {3}, {2, 4}}));
  EXPECT_TRUE(pack_completions(lengths, {}, 10).empty());
}

TEST(DynamicSampling, DrawsReplacementsUpToTheFactor) {
  const DynamicSampling plan{4, 3};
  EXPECT_EQ(plan.next_draw(0, 0), 4);
  EXPECT_EQ(plan.next_draw(4, 4), 0);
  EXPECT_EQ(plan.next_draw(4, 1), 3);
  EXPECT_EQ(plan.next_draw(11, 1), 1);
  EXPECT_EQ(plan.next_draw(12, 0), 0);
  const DynamicSampling none{4, 1};
  EXPECT_EQ(none.next_draw(0, 0), 4);
  EXPECT_EQ(none.next_draw(4, 0), 0);
}

TEST(KlController, WarmsUpLinearlyAndThenFollowsItsTarget) {
  KlController controller(KlSchedule{0.4, 4, 0.1});
  for (const double expected : {0.1, 0.2, 0.3, 0.4}) {
    EXPECT_DOUBLE_EQ(controller.coefficient(), expected);
    controller.close_update(5.0);
  }
  EXPECT_DOUBLE_EQ(controller.coefficient(), 0.4);
  controller.close_update(0.11);  // 10 % above
  EXPECT_DOUBLE_EQ(controller.coefficient(), 0.4 * 1.01);
  controller.close_update(7.0);  // far above counts as 20 %
  EXPECT_DOUBLE_EQ(controller.coefficient(), 0.4 * 1.01 * 1.02);
  controller.close_update(0.0);  // far below as well
  EXPECT_DOUBLE_EQ(controller.coefficient(), 0.4 * 1.01 * 1.02 * 0.98);
  controller.close_update(std::nullopt);
  EXPECT_DOUBLE_EQ(controller.coefficient(), 0.4 * 1.01 * 1.02 * 0.98);
  KlController resumed(KlSchedule{0.4, 4, 0.1}, controller.state());
  EXPECT_EQ(resumed.coefficient(), controller.coefficient());
  KlController fixed(KlSchedule{0.4, 0, std::nullopt});
  fixed.close_update(5.0);
  EXPECT_EQ(fixed.coefficient(), 0.4);
}

using enum DeadCause;

TEST(StallWatch, EndsTheRunAfterSoManyUpdatesInARow) {
  StallWatch watch(3);
  EXPECT_FALSE(watch.close_update(std::vector{truncated, truncated}));
  EXPECT_FALSE(watch.close_update(std::vector{truncated, no_spread}));
  EXPECT_FALSE(watch.close_update(std::vector{truncated, none}));  // one live group starts the count anew
  EXPECT_EQ(watch.state().updates, 0);
  EXPECT_FALSE(watch.close_update(std::vector{no_spread, no_spread}));
  EXPECT_FALSE(watch.close_update(std::vector{no_spread, truncated}));
  StallWatch resumed(3, watch.state());
  EXPECT_TRUE(resumed.close_update(std::vector{no_spread, unscored}));
  StallWatch never(0);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(never.close_update(std::vector{truncated}));
}

TEST(StallWatch, TellsTheCausesApartWithTheirSharesAndTheKeyToChange) {
  StallWatch cut(3);
  for (int i = 0; i < 3; ++i) cut.close_update(std::vector{truncated, truncated});
  EXPECT_EQ(
      cut.report("grpo", 4),
      "3 updates in a row had nothing to train on: of their 6 groups 100 % were truncated, 0 % had rewards "
      "all alike, 0 % went unscored. Answers hit [grpo.sampling].max_new_tokens = 4 before they ended: "
      "raise it ([grpo].max_stalled_updates = 3)");
  StallWatch alike(2);
  alike.close_update(std::vector{no_spread, truncated});
  alike.close_update(std::vector{no_spread, no_spread});
  const std::string report = alike.report("grpo", 4);
  for (const char* part : {"25 % were truncated", "75 % had rewards all alike", "[grpo].group_size"}) {
    EXPECT_NE(report.find(part), std::string::npos) << report;
  }
  StallWatch unscored_ones(1);
  unscored_ones.close_update(std::vector{unscored});
  EXPECT_NE(unscored_ones.report("grpo", 4).find("100 % went unscored"), std::string::npos);
}

}  // namespace
}  // namespace retro::algo
