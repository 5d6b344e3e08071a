// Advantages against tables made by hand.
#include "algo/advantages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace retro::algo {
namespace {

using Numbers = std::vector<double>;
using Flags = std::vector<uint8_t>;

TEST(GroupAdvantages, AreRewardsLessTheGroupsMeanUndivided) {
  const GroupAdvantages group =
      group_advantages(Numbers{1, 2, 3, 6}, Flags{0, 0, 0, 0}, false, Baseline::mean);
  EXPECT_EQ(group.advantages, (Numbers{-2, -1, 0, 3}));
  EXPECT_EQ(group.live_members(), 4);
  EXPECT_EQ(group.cause, DeadCause::none);
}

TEST(GroupAdvantages, LeaveOneOutTakesTheMeanOfTheOthers) {
  const GroupAdvantages group =
      group_advantages(Numbers{1, 2, 3, 6}, Flags{0, 0, 0, 0}, false, Baseline::leave_one_out);
  const Numbers expected = {1 - 11.0 / 3, 2 - 10.0 / 3, 3 - 3.0, 6 - 2.0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(group.advantages[i], expected[i]);
}

TEST(GroupAdvantages, AMaskedMembersRewardChangesNoByte) {
  const Flags cut = {0, 1, 0, 1, 0};
  for (const Baseline baseline : {Baseline::mean, Baseline::leave_one_out}) {
    const GroupAdvantages a = group_advantages(Numbers{1, 0, 2, 0, 6}, cut, true, baseline);
    const GroupAdvantages b = group_advantages(Numbers{1, 1e9, 2, NAN, 6}, cut, true, baseline);
    EXPECT_EQ(a.advantages, b.advantages);
    EXPECT_EQ(a.live, (Flags{1, 0, 1, 0, 1}));
    EXPECT_EQ(b.live, a.live);
    const GroupAdvantages alone = group_advantages(Numbers{1, 2, 6}, Flags{0, 0, 0}, true, baseline);
    EXPECT_EQ(a.advantages, (Numbers{alone.advantages[0], 0, alone.advantages[1], 0, alone.advantages[2]}));
  }
  const GroupAdvantages unmasked = group_advantages(Numbers{1, 3}, Flags{0, 1}, false, Baseline::mean);
  EXPECT_EQ(unmasked.advantages, (Numbers{-1, 1}));
}

TEST(GroupAdvantages, AGroupWithoutSpreadOrWithFewerThanTwoLiveMembersIsDeadForAReason) {
  struct Case {
    Numbers rewards;
    Flags cut;
    bool mask;
    DeadCause cause;
  };
  const std::vector<Case> cases = {
      {{0.1, 0.1, 0.1}, {0, 0, 0}, false, DeadCause::no_spread},
      {{0.1, 0.1, 0.1}, {0, 1, 1}, false, DeadCause::no_spread},
      {{0.1, 0.1, 0.1}, {1, 1, 1}, false, DeadCause::truncated},
      {{1, 2, 3}, {1, 1, 1}, true, DeadCause::truncated},
      {{1, 2, 3}, {1, 1, 0}, true, DeadCause::truncated},
      {{1, 2, 2}, {1, 0, 0}, true, DeadCause::no_spread},
      {{1, 2, 3}, {1, 1, 1}, false, DeadCause::none},
      {{1, 2, 3}, {1, 0, 0}, true, DeadCause::none},
      {{1, std::nextafter(1, 2)}, {0, 0}, true, DeadCause::none},
  };
  for (const Case& one : cases) {
    const GroupAdvantages group = group_advantages(one.rewards, one.cut, one.mask, Baseline::mean);
    EXPECT_EQ(group.cause, one.cause);
    EXPECT_EQ(group.live_members() > 0, one.cause == DeadCause::none);
    if (one.cause != DeadCause::none) {
      EXPECT_EQ(group.advantages, Numbers(one.rewards.size(), 0.0));
    }
  }
}

TEST(OverlongPenalty, RisesOverTheLastTokens) {
  const OverlongPenalty penalty{100, 20, 0.5};
  for (const auto& [length, expected] : std::vector<std::pair<int64_t, double>>{
           {1, 0}, {79, 0}, {80, 0}, {81, 0.025}, {90, 0.25}, {99, 0.475}, {100, 0.5}}) {
    EXPECT_DOUBLE_EQ(penalty.at(length), expected) << length;
  }
  EXPECT_DOUBLE_EQ((OverlongPenalty{8, 8, 1.0}.at(4)), 0.5);
}

TEST(Whiten, GivesMeanZeroAndUnitVarianceInOrder) {
  Numbers values = {3, -1, 4, 1, -5, 9};
  whiten(values);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  EXPECT_NEAR(sum, 0, 1e-14);
  EXPECT_NEAR(squares, 6, 1e-7);
  EXPECT_NEAR(values[5], (9 - 11.0 / 6) / std::sqrt(677.0 / 36), 1e-8);
  Numbers alike(5, 0.3);
  whiten(alike);
  for (const double value : alike) EXPECT_NEAR(value, 0, 1e-11);
  Numbers none;
  whiten(none);
}

}  // namespace
}  // namespace retro::algo
