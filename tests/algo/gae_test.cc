// Advantages over tokens, and the critic.
#include "algo/gae.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "algo/advantages.h"
#include "algo/critic.h"
#include "base/error.h"
#include "base/random.h"
#include "tests/support/finite_difference.h"

namespace retro::algo {
namespace {

using Numbers = std::vector<double>;

Numbers advantages(double reward, const Numbers& values, double gamma, double lambda) {
  Numbers made(values.size());
  gae(reward, values, gamma, lambda, made);
  return made;
}

TEST(Gae, TheRewardComesWithTheLastToken) {
  const Numbers discounted = advantages(1, {0, 0, 0}, 0.9, 1);
  EXPECT_DOUBLE_EQ(discounted[0], 0.81);
  EXPECT_DOUBLE_EQ(discounted[1], 0.9);
  EXPECT_DOUBLE_EQ(discounted[2], 1.0);
  EXPECT_EQ(advantages(1, {0, 0, 0}, 1, 1), (Numbers{1, 1, 1}));
  EXPECT_EQ(advantages(1, {0, 0, 0}, 1, 0), (Numbers{0, 0, 1}));
  EXPECT_EQ(advantages(-2, {0.5}, 0.3, 0.7), (Numbers{-2.5}));
}

// The definition: a sum over later δ of (γλ)^l, with V = 0 behind the last token.
TEST(Gae, IsTheDiscountedSumOfLaterDifferences) {
  const Numbers values = {0.3, -0.2, 0.7, 0.1, -0.4};
  constexpr double kGamma = 0.97, kLambda = 0.8, kReward = 1.25;
  const Numbers made = advantages(kReward, values, kGamma, kLambda);
  for (size_t t = 0; t < values.size(); ++t) {
    double expected = 0, factor = 1;
    for (size_t l = t; l < values.size(); ++l, factor *= kGamma * kLambda) {
      const bool last = l + 1 == values.size();
      expected += factor * ((last ? kReward : kGamma * values[l + 1]) - values[l]);
    }
    EXPECT_NEAR(made[t], expected, 1e-14);
  }
}

TEST(Gae, ABatchIsWhitenedOverItsTokensAndReturnsAreNot) {
  const std::vector<int64_t> lengths = {2, 1, 3};
  const Numbers values = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, rewards = {1, -1, 0.5};
  const BatchAdvantages batch = critic_advantages(lengths, rewards, values, 1, 0.95);
  Numbers plain = advantages(1, {0.1, 0.2}, 1, 0.95);
  for (const double one : advantages(-1, {0.3}, 1, 0.95)) plain.push_back(one);
  for (const double one : advantages(0.5, {0.4, 0.5, 0.6}, 1, 0.95)) plain.push_back(one);
  for (size_t t = 0; t < plain.size(); ++t) EXPECT_EQ(batch.returns[t], plain[t] + values[t]);
  whiten(plain);
  EXPECT_EQ(batch.advantages, plain);
  EXPECT_NEAR(std::accumulate(plain.begin(), plain.end(), 0.0), 0, 1e-13);
}

TEST(Gae, WithoutACriticEachTokenHasItsAnswersWhitenedReward) {
  const std::vector<int64_t> lengths = {3, 1};
  const BatchAdvantages batch = reward_advantages(lengths, Numbers{2, 4});
  ASSERT_EQ(batch.advantages.size(), 4U);
  for (size_t t = 0; t < 3; ++t) EXPECT_NEAR(batch.advantages[t], -1, 1e-7);
  EXPECT_NEAR(batch.advantages[3], 1, 1e-7);
  EXPECT_TRUE(batch.returns.empty());
}

constexpr int64_t kWidth = 4;

FeatureRows features(FeatureType type, int64_t rows) {
  const RandomStream stream(3, "features");
  FeatureRows made(kWidth, type);
  std::vector<float> row(kWidth);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < kWidth; ++i)
      row[static_cast<size_t>(i)] = 2 * stream.uniform(static_cast<uint64_t>(r * kWidth + i)) - 1;
    made.append(row);
  }
  return made;
}

TEST(FeatureRows, HoldTheirNumbersToTheirTypesPrecision) {
  for (const auto& [type, bytes, error] :
       {std::tuple{FeatureType::f32, 4, 0.0}, std::tuple{FeatureType::f16, 2, 0x1p-11},
        std::tuple{FeatureType::bf16, 2, 0x1p-8}}) {
    const FeatureRows exact = features(FeatureType::f32, 7), rounded = features(type, 7);
    EXPECT_EQ(rounded.rows(), 7);
    EXPECT_EQ(rounded.bytes(), 7 * kWidth * bytes);
    std::vector<float> a(kWidth), b(kWidth);
    for (int64_t r = 0; r < 7; ++r) {
      exact.read(r, a);
      rounded.read(r, b);
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i], error * std::abs(a[i]));
    }
  }
}

TEST(Critic, StartsAtZeroAndItsFirstStepIsAdams) {
  const FeatureRows rows = features(FeatureType::f32, 5);
  Critic critic(kWidth, 0.01);
  EXPECT_EQ(critic.values(rows), Numbers(5, 0.0));
  const Numbers returns = {1, -1, 2, 0.5, 0};
  EXPECT_DOUBLE_EQ(critic.fit(rows, returns, 1), 0.5 * (1 + 1 + 4 + 0.25) / 5);
  // m/c1 = g and v/c2 = g² after one step, so each weight moves by the rate against its gradient's sign.
  const auto loss = [&](const Numbers& weights) {
    std::vector<float> row(kWidth);
    double sum = 0;
    for (int64_t r = 0; r < 5; ++r) {
      rows.read(r, row);
      double value = weights.back();
      for (size_t i = 0; i < row.size(); ++i) value += weights[i] * static_cast<double>(row[i]);
      sum += 0.5 * (value - returns[static_cast<size_t>(r)]) * (value - returns[static_cast<size_t>(r)]) / 5;
    }
    return sum;
  };
  const Numbers gradient = test::central_differences(loss, Numbers(kWidth + 1, 0.0));
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(critic.state().first_moments[i], 0.1 * gradient[i], 1e-9);
    EXPECT_NEAR(critic.state().weights[i], gradient[i] > 0 ? -0.01 : 0.01, 1e-8);
  }
}

TEST(Critic, LearnsALinearReturnAndReportsTheLossBeforeEachFit) {
  const FeatureRows rows = features(FeatureType::f32, 40);
  Numbers returns;
  std::vector<float> row(kWidth);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    rows.read(r, row);
    returns.push_back(0.5 + static_cast<double>(row[0]) - 2 * static_cast<double>(row[3]));
  }
  Critic critic(kWidth, 0.05);
  const double first = critic.fit(rows, returns, 400);
  const double later = critic.fit(rows, returns, 1);
  EXPECT_GT(first, 0.5);
  EXPECT_LT(later, 1e-4);
  EXPECT_NEAR(critic.state().weights[3], -2, 0.05);
  EXPECT_NEAR(critic.state().weights.back(), 0.5, 0.05);
}

TEST(Critic, GoesOnFromItsStateToTheSameNumbers) {
  const FeatureRows rows = features(FeatureType::bf16, 9);
  const Numbers returns = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Critic whole(kWidth, 0.01), half(kWidth, 0.01);
  whole.fit(rows, returns, 6);
  half.fit(rows, returns, 2);
  Critic resumed(kWidth, 0.01, half.state());
  resumed.fit(rows, returns, 4);
  EXPECT_EQ(resumed.state().weights, whole.state().weights);
  EXPECT_EQ(resumed.state().steps, 6);
  EXPECT_THROW(Critic(kWidth + 1, 0.01, half.state()), Error);
}

}  // namespace
}  // namespace retro::algo
