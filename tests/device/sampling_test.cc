// Tokens drawn from rows of logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "device/cpu/head_rows.h"

namespace retro::device::cpu {
namespace {

Drawn draw_from(std::vector<float> z, const Draw& draw) {
  return draw_token(z.data(), z.size(), draw);
}

std::vector<int> frequencies(const std::vector<float>& z, int draws, float inverse_temperature, float top_p) {
  const RandomStream stream(3, "test");
  std::vector<int> count(z.size());
  for (int i = 0; i < draws; ++i) {
    const Drawn drawn = draw_from(z, {stream.uniform(static_cast<uint64_t>(i)), inverse_temperature, top_p});
    ++count.at(static_cast<size_t>(drawn.token));
  }
  return count;
}

TEST(DrawToken, TakesTheLargestLogitAtTemperatureZero) {
  EXPECT_EQ(draw_from({0.0F, 3.0F, -1.0F, 3.0F}, {0.9F, 0, 1}).token, 1);
  EXPECT_EQ(draw_from({-INFINITY, -2.0F}, {0, 0, 1}).token, 1);
}

TEST(DrawToken, RefusesLogitsThatAreNoNumbers) {
  for (const float inverse_temperature : {0.0F, 1.4F}) {
    EXPECT_EQ(draw_from({NAN, NAN, NAN}, {0.5F, inverse_temperature, 0.95F}).token, -1);
    EXPECT_EQ(draw_from({0.0F, NAN, 1.0F}, {0.5F, inverse_temperature, 1}).token, -1);
    EXPECT_EQ(draw_from({0.0F, INFINITY}, {0.5F, inverse_temperature, 1}).token, -1);
    EXPECT_EQ(draw_from({-INFINITY, -INFINITY}, {0.5F, inverse_temperature, 1}).token, -1);
  }
}

// Pearson's statistic of ten thousand draws: with k − 1 degrees of freedom its mean is k − 1 and its variance
// 2(k − 1), so five standard deviations above is a wrong distribution.
TEST(DrawToken, ChiSquareOfTenThousandDraws) {
  constexpr int kDraws = 10000;
  for (const size_t words : {5U, 40U}) {
    for (const float temperature : {1.0F, 0.7F, 1.5F}) {
      std::vector<float> z(words);
      const RandomStream stream(words, "logits");
      for (size_t i = 0; i < words; ++i) z[i] = 2 * stream.uniform(i);
      std::vector<double> p(words);
      for (size_t i = 0; i < words; ++i) p[i] = std::exp(z[i] / temperature);
      const double total = std::accumulate(p.begin(), p.end(), 0.0);
      const auto count = frequencies(z, kDraws, 1 / temperature, 1);
      double statistic = 0;
      for (size_t i = 0; i < words; ++i) {
        const double expected = kDraws * p[i] / total;
        statistic += (count[i] - expected) * (count[i] - expected) / expected;
      }
      const auto freedom = static_cast<double>(words - 1);
      EXPECT_LT(statistic, freedom + 5 * std::sqrt(2 * freedom)) << words << " words, T " << temperature;
    }
  }
}

// Words of many blocks: each block is drawn from as often as it weighs.
TEST(DrawToken, FindsItsBlockInALargeVocabulary) {
  constexpr size_t kWords = 3 * kVocabularyBlock + 77;
  constexpr int kDraws = 3000;
  std::vector<float> z(kWords, -5.0F);
  const std::array<size_t, 4> likely = {3, kVocabularyBlock, 2 * kVocabularyBlock + 9, kWords - 1};
  for (const size_t i : likely) z[i] = 8.0F;
  const auto count = frequencies(z, kDraws, 1, 1);
  const double rest = static_cast<double>(kWords - likely.size()) * std::exp(-5.0);
  const double p = std::exp(8.0) / (likely.size() * std::exp(8.0) + rest);
  for (const size_t i : likely)
    EXPECT_NEAR(count[i] / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws)) << i;
}

// Holtzman et al. 2020: the smallest set of the likeliest tokens whose probabilities reach top_p, drawn from
// by their own weights.
TEST(DrawToken, DrawsFromTheNucleusAlone) {
  const std::vector<float> z = {std::log(0.3F), std::log(0.5F), std::log(0.15F), std::log(0.05F)};
  const auto count = frequencies(z, 4000, 1, 0.7F);
  EXPECT_EQ(count[2] + count[3], 0);
  EXPECT_NEAR(count[0] / 4000.0, 0.375, 5 * std::sqrt(0.375 * 0.625 / 4000));
  const auto one = frequencies(z, 200, 1, 1e-6F);
  EXPECT_EQ(one[1], 200);
}

// Of equal tokens at the edge the lowest ids are kept, as many as the mass asks for.
TEST(DrawToken, KeepsTheLowestIdsAmongEquals) {
  const std::vector<float> z(10, 0.0F);
  const auto count = frequencies(z, 2000, 1, 0.35F);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(count[i] / 2000.0, 0.25, 5 * std::sqrt(0.25 * 0.75 / 2000)) << i;
  EXPECT_EQ(std::accumulate(count.begin() + 4, count.end(), 0), 0);
}

TEST(DrawToken, GivesTheLogProbabilityOverAllTokensAtTheTemperature) {
  const std::vector<float> z = {1.0F, 0.0F, -1.0F, 2.0F};
  for (const float top_p : {1.0F, 0.5F}) {
    const Drawn drawn = draw_from(z, {0.1F, 1 / 0.7F, top_p});
    double total = 0;
    for (const float x : z) total += std::exp(x / 0.7);
    EXPECT_NEAR(drawn.logprob, z[static_cast<size_t>(drawn.token)] / 0.7 - std::log(total), 1e-6);
  }
}

TEST(DrawToken, EndsOfTheUnitIntervalGiveTokensThatCanBe) {
  const std::vector<float> z = {-INFINITY, 0.0F, -INFINITY, 1.0F, -INFINITY};
  EXPECT_EQ(draw_from(z, {0, 1, 1}).token, 1);
  EXPECT_EQ(draw_from(z, {std::nextafter(1.0F, 0.0F), 1, 1}).token, 3);
  EXPECT_EQ(draw_from(z, {std::nextafter(1.0F, 0.0F), 1, 0.99F}).token, 3);
}

}  // namespace
}  // namespace retro::device::cpu
