// Our exponential and logistic function against double, on every instruction set.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/device/math_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "device/cpu/math-inl.h"
#include "tests/support/compare.h"
#include "tests/support/cpu_targets.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

void exp_all(const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; i += kVectorLanes) store_n(exp(load_n(x + i, n - i)), y + i, n - i);
}

void sigmoid_all(const float* x, float* y, float* complement, size_t n) {
  for (size_t i = 0; i < n; i += kVectorLanes) {
    const SigmoidPair s = sigmoid(load_n(x + i, n - i));
    store_n(s.sigmoid, y + i, n - i);
    store_n(s.complement, complement + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {
HWY_EXPORT(exp_all);
HWY_EXPORT(sigmoid_all);
}  // namespace retro::device::cpu

namespace retro::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> exp_of(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  using namespace device::cpu;
  HWY_DYNAMIC_DISPATCH(exp_all)(x.data(), y.data(), x.size());
  return y;
}

struct Sigmoids {
  std::vector<float> sigmoid;
  std::vector<float> complement;
};

Sigmoids sigmoids_of(const std::vector<float>& x) {
  Sigmoids s{std::vector<float>(x.size()), std::vector<float>(x.size())};
  using namespace device::cpu;
  HWY_DYNAMIC_DISPATCH(sigmoid_all)(x.data(), s.sigmoid.data(), s.complement.data(), x.size());
  return s;
}

// Every 509th float in [low, high], both zeros' neighbourhoods included, and an odd count.
std::vector<float> sweep(float low, float high) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < std::bit_cast<uint32_t>(std::max(high, -low)); bits += 509) {
    const auto value = std::bit_cast<float>(bits);
    if (value <= high) values.push_back(value);
    if (-value >= low) values.push_back(-value);
  }
  if (values.size() % 2 == 0) values.push_back(high);
  return values;
}

double ulps(float value, double reference) {
  const float rounded = std::abs(static_cast<float>(reference));
  const double ulp = static_cast<double>(std::nextafter(rounded, kInfinity)) - rounded;
  return std::abs(value - reference) / ulp;
}

TEST(Exp, IsWithinTwoUlps) {
  const std::vector<float> x = sweep(-86.9F, 88.72F);
  const std::vector<float> y = exp_of(x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, ulps(y[i], std::exp(static_cast<double>(x[i]))));
  EXPECT_GT(x.size(), 1000000U);
  EXPECT_LT(worst, 2.0);
}

TEST(Exp, IsExactWhereSoftmaxNeedsIt) {
  const std::vector<float> y =
      exp_of({0.0F, -0.0F, -kInfinity, -86.91F, -1e30F, 88.8F, 90.0F, 1e30F, kInfinity, std::nanf("")});
  const std::vector<float> expected = {1, 1, 0, 0, 0, kInfinity, kInfinity, kInfinity, kInfinity};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[i], expected[i]) << i;
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST(Sigmoid, BothSidesAreWithinFourUlps) {
  const std::vector<float> x = sweep(-86.0F, 86.0F);
  const Sigmoids s = sigmoids_of(x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = std::exp(-static_cast<double>(x[i]));
    worst = std::max({worst, ulps(s.sigmoid[i], 1 / (1 + e)), ulps(s.complement[i], e / (1 + e))});
  }
  EXPECT_LT(worst, 4.0);
}

TEST(Sigmoid, SaturatesWithoutNaN) {
  const Sigmoids s = sigmoids_of({-kInfinity, -1e30F, -88.0F, 0.0F, 88.0F, 1e30F, kInfinity});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(s.sigmoid[i], 0) << i;
    EXPECT_EQ(s.complement[i], 1) << i;
  }
  EXPECT_EQ(s.sigmoid[3], 0.5F);
  for (size_t i = 4; i < 7; ++i) EXPECT_EQ(s.sigmoid[i], 1) << i;
}

TEST(Exp, HasTheSameBitsOnEveryInstructionSet) {
  const std::vector<float> x = sweep(-100, 100);
  const std::vector<float> expected = exp_of(x);
  const Sigmoids sigmoids = sigmoids_of(x);
  for (const int64_t target : cpu_targets()) {
    const OnTarget on(target);
    EXPECT_TRUE(same_bits(exp_of(x), expected)) << cpu_target_name(target);
    EXPECT_TRUE(same_bits(sigmoids_of(x).sigmoid, sigmoids.sigmoid)) << cpu_target_name(target);
    EXPECT_TRUE(same_bits(sigmoids_of(x).complement, sigmoids.complement)) << cpu_target_name(target);
  }
}

}  // namespace
}  // namespace retro::test
#endif  // HWY_ONCE
