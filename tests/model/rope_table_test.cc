// Rotary tables against the formula in double.
#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace retro::model {
namespace {

// Half an ulp of f32 at 1, and what an angle of up to `angle` is off by in double.
double bound(double angle) {
  return 0x1p-25 + 1e-14 * (1 + angle);
}

void expect_formula(const RopeSettings& settings, int32_t dims, int32_t positions) {
  const RopeTable table = make_rope_table(settings, dims, positions, positions);
  ASSERT_EQ(table.values.size(), static_cast<size_t>(dims) * static_cast<size_t>(positions));
  EXPECT_EQ(table.settings, settings);
  for (int32_t p = 0; p < positions; ++p) {
    const float* row = table.values.data() + static_cast<ptrdiff_t>(p) * dims;
    for (int32_t i = 0; i < dims / 2; ++i) {
      double angle = p * static_cast<double>(settings.scale) *
                     std::pow(static_cast<double>(settings.base), -2.0 * i / dims);
      if (settings.factors != nullptr) angle /= static_cast<double>(settings.factors[i]);
      ASSERT_NEAR(static_cast<double>(row[i]), std::cos(angle), bound(angle)) << p << ' ' << i;
      ASSERT_NEAR(static_cast<double>(row[dims / 2 + i]), std::sin(angle), bound(angle)) << p << ' ' << i;
    }
  }
}

TEST(RopeTable, FollowsItsFormula) {
  for (const float base : {1.0F, 10000.0F, 1e6F, 1e12F}) {
    for (const int32_t dims : {2, 8, 64, 96}) expect_formula({base, 1.0F, nullptr}, dims, 100);
  }
}

TEST(RopeTable, LinearScalingSlowsAndFactorsDivide) {
  expect_formula({10000.0F, 0.125F, nullptr}, 64, 200);
  std::vector<float> factors(32);
  for (size_t i = 0; i < factors.size(); ++i)
    factors[i] = i < 10 ? 1.0F : 1.0F + 0.7F * static_cast<float>(i);
  expect_formula({500000.0F, 1.0F, factors.data()}, 64, 200);
  expect_formula({500000.0F, 0.25F, factors.data()}, 64, 200);
}

// The factors follow from what a run's sequences may have, not from the positions that are made.
TEST(RopeTable, TakesTheLongFactorsBeyondTheOriginalContext) {
  const std::vector<float> near = {1, 2, 3, 4};
  const std::vector<float> far = {5, 6, 7, 8};
  RopeSettings settings;
  settings.factors = near.data();
  settings.long_factors = far.data();
  settings.original_context = 64;
  for (const int32_t context : {8, 64, 65, 1000}) {
    const RopeSettings expected{10000.0F, 1.0F, context > 64 ? far.data() : near.data()};
    EXPECT_EQ(make_rope_table(settings, 8, 100, context).values,
              make_rope_table(expected, 8, 100, context).values)
        << context;
  }
}

TEST(RopeTable, MagnitudeMultipliesCosinesAndSines) {
  RopeSettings settings;
  const RopeTable plain = make_rope_table(settings, 8, 50, 50);
  settings.magnitude = 2;
  const RopeTable doubled = make_rope_table(settings, 8, 50, 50);
  for (size_t i = 0; i < plain.values.size(); ++i) EXPECT_EQ(doubled.values[i], 2 * plain.values[i]);
}

TEST(RopeTable, HoldsFarPositions) {
  const RopeSettings settings{10000.0F, 1.0F, nullptr};
  expect_formula(settings, 4, 140000);
  const RopeTable short_table = make_rope_table(settings, 64, 10, 1000);
  const RopeTable long_table = make_rope_table(settings, 64, 1000, 1000);
  EXPECT_TRUE(std::equal(short_table.values.begin(), short_table.values.end(), long_table.values.begin()));
}

}  // namespace
}  // namespace retro::model
