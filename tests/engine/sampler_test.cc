#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace retro::engine {
namespace {

TEST(Sampler, TakesTheLargestLogitAtTemperatureZero) {
  Sampler sampler({0, 1, 1});
  EXPECT_EQ(sampler.sample(std::array{0.0F, 3.0F, -1.0F, 2.0F}, 0), 1);
  EXPECT_EQ(sampler.sample(std::array{-INFINITY, -2.0F}, 0), 1);
}

// Frequencies of many draws against softmax(z / temperature), within five standard errors.
TEST(Sampler, DrawsByTheSoftmax) {
  const std::array z = {1.0F, 0.0F, -1.0F, 2.0F};
  const double temperature = 0.7;
  Sampler sampler({temperature, 1, 3});
  constexpr int kDraws = 20000;
  std::array<int, 4> count{};
  for (uint64_t i = 0; i < kDraws; ++i) ++count[static_cast<size_t>(sampler.sample(z, i))];
  double total = 0;
  for (const float x : z) total += std::exp(x / temperature);
  for (size_t i = 0; i < z.size(); ++i) {
    const double p = std::exp(z[i] / temperature) / total;
    EXPECT_NEAR(count[i] / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws)) << i;
  }
}

// Holtzman et al. 2020: the smallest set of the likeliest tokens whose probabilities reach top_p.
TEST(Sampler, DrawsFromTheNucleusAlone) {
  const std::array z = {std::log(0.5F), std::log(0.3F), std::log(0.15F), std::log(0.05F)};
  Sampler sampler({1, 0.7, 5});
  std::array<int, 4> count{};
  for (uint64_t i = 0; i < 2000; ++i) ++count[static_cast<size_t>(sampler.sample(z, i))];
  EXPECT_GT(count[0], 0);
  EXPECT_GT(count[1], 0);
  EXPECT_EQ(count[2] + count[3], 0);
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  for (const double temperature : {0.0, 0.7}) {
    Sampler sampler({temperature, 0.95, 1});
    EXPECT_THROW(sampler.sample(std::array{NAN, NAN, NAN}, 0), Error);
    EXPECT_THROW(sampler.sample(std::array{0.0F, NAN, 1.0F}, 0), Error);
    EXPECT_THROW(sampler.sample(std::array{0.0F, INFINITY}, 0), Error);
  }
}

}  // namespace
}  // namespace retro::engine
