// Figures of an update against sums by hand.
#include "algo/rollout_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace retro::algo {
namespace {

std::map<std::string, double> figures(std::span<const SampledAnswer> answers, int64_t groups) {
  std::map<std::string, double> named;
  for (const auto& [name, value] : rollout_metrics(answers, groups)) {
    EXPECT_TRUE(named.emplace(name, value).second) << name << " twice";
  }
  return named;
}

const std::vector<SampledAnswer> kAnswers = {
    {0, 1.0, 1.5, {}, 3, false, true, 0.5},   {0, 0.0, 0.0, {}, 8, true, true, -0.5},
    {4, 2.0, 2.0, {}, 5, false, false, 0.0},  {4, 2.0, 2.0, {}, 4, false, false, 0.0},
    {7, -1.0, -1.0, {}, 8, true, false, 0.0}, {7, 2.0, 2.0, {}, 2, false, true, 1.0},
};

TEST(RolloutMetrics, AreThoseOfTheAnswersAndTheirGroups) {
  const auto named = figures(kAnswers, 2);
  EXPECT_DOUBLE_EQ(named.at("reward/mean"), 1.0);
  EXPECT_EQ(named.at("reward/min"), -1.0);
  EXPECT_EQ(named.at("reward/max"), 2.0);
  EXPECT_DOUBLE_EQ(named.at("reward/std"), std::sqrt(8.0 / 6));
  EXPECT_DOUBLE_EQ(named.at("reward/verifiable_mean"), 6.5 / 6);
  EXPECT_DOUBLE_EQ(named.at("reward/group_std"), (0.5 + 0 + 1.5) / 3);
  EXPECT_DOUBLE_EQ(named.at("completions/length_mean"), 5.0);
  EXPECT_EQ(named.at("completions/length_min"), 2.0);
  EXPECT_EQ(named.at("completions/length_max"), 8.0);
  EXPECT_DOUBLE_EQ(named.at("completions/truncation_fraction"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(named.at("batch/zero_std_group_fraction"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(named.at("batch/advantage_abs_mean"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(named.at("batch/trained_fraction"), 0.5);
  EXPECT_DOUBLE_EQ(named.at("batch/groups_sampled_fraction"), 1.5);
  EXPECT_EQ(named.count("reward/judge_mean"), 0U);
}

TEST(RolloutMetrics, LeaveOutWhatThereIsNot) {
  EXPECT_TRUE(rollout_metrics({}, 2).empty());
  const auto named = figures(kAnswers, 0);
  EXPECT_EQ(named.count("reward/group_std"), 0U);
  EXPECT_EQ(named.count("batch/zero_std_group_fraction"), 0U);
  std::vector<SampledAnswer> judged = kAnswers;
  judged[0].judged = 0.25;
  judged[1].judged = 0.75;
  EXPECT_DOUBLE_EQ(figures(judged, 3).at("reward/judge_mean"), 0.5);
}

}  // namespace
}  // namespace retro::algo
