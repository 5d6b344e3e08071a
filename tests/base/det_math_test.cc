// The functions against the C library's long double ones (64 bits of significand), in units of the last
// place.
#include "base/det_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace retro {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double ulps(double value, long double reference) {
  const auto rounded = static_cast<double>(reference);
  const double ulp = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  return static_cast<double>(std::abs(value - reference) / ulp);
}

double uniform(uint64_t index, double low, double high) {
  static const RandomStream stream(7, "det_math");
  return low + (high - low) * (static_cast<double>(stream.bits(index) >> 11) * 0x1p-53);
}

TEST(DetMath, ExpIsWithinOneUlp) {
  double worst = 0;
  for (uint64_t i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? uniform(i, -708, 709.7) : uniform(i, -1, 1);
    worst = std::max(worst, ulps(det_exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(det_exp(0), 1);
  EXPECT_EQ(det_exp(-kInfinity), 0);
  EXPECT_EQ(det_exp(kInfinity), kInfinity);
  EXPECT_EQ(det_exp(710), kInfinity);
  EXPECT_EQ(det_exp(-746), 0);
  EXPECT_NEAR(det_exp(-745) / 0x1p-1074, 1, 0.5);  // the smallest subnormal
  EXPECT_TRUE(std::isnan(det_exp(std::nan(""))));
}

TEST(DetMath, LogIsWithinOneUlp) {
  double worst = 0;
  for (uint64_t i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(uniform(i, -1074, 1023.9)) : uniform(i, 0.5, 2);
    worst = std::max(worst, ulps(det_log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(det_log(1), 0);
  EXPECT_EQ(det_log(0), -kInfinity);
  EXPECT_EQ(det_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(det_log(-1)));
  EXPECT_TRUE(std::isnan(det_log(std::nan(""))));
}

TEST(DetMath, PowIsWithinTwoUlps) {
  double worst = 0;
  for (uint64_t i = 0; i < 200000; ++i) {
    const double x = uniform(2 * i, 1, 2e6);
    const double y = uniform(2 * i + 1, -2, 2);
    worst = std::max(worst,
                     ulps(det_pow(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))));
  }
  for (int step = 1; step < 20000; ++step) {  // a bias correction's 0.999^t
    worst = std::max(
        worst, ulps(det_pow(0.999, step), std::pow(0.999L, static_cast<long double>(step)) *
                                              std::pow(0.999 / 0.999L, static_cast<long double>(step))));
  }
  EXPECT_LT(worst, 2.0);
}

TEST(DetMath, PowAtTheEdgesIsThatOfC) {
  const double values[] = {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, 1e300, kInfinity, -kInfinity};
  const double powers[] = {0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -0.5, kInfinity, -kInfinity, 1e300};
  for (const double x : values) {
    for (const double y : powers) {
      const double expected = std::pow(x, y);
      const double actual = det_pow(x, y);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(actual)) << x << "^" << y;
      } else {
        EXPECT_DOUBLE_EQ(actual, expected) << x << "^" << y;
        EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << x << "^" << y;
      }
    }
  }
}

TEST(DetMath, SineAndCosineAreWithinTwoUlps) {
  double worst = 0;
  for (uint64_t i = 0; i < 400000; ++i) {
    const double range = i % 3 == 0 ? 1.0 : (i % 3 == 1 ? 100.0 : 1e7);
    const double x = uniform(i, -range, range);
    worst = std::max(worst, ulps(det_sin(x), std::sin(static_cast<long double>(x))));
    worst = std::max(worst, ulps(det_cos(x), std::cos(static_cast<long double>(x))));
  }
  for (int i = 1; i < 200000;
       ++i) {  // the doubles nearest to multiples of π/2, where almost all of x cancels
    const double x = i * 1.5707963267948966;
    worst = std::max(worst, ulps(det_sin(x), std::sin(static_cast<long double>(x))));
    worst = std::max(worst, ulps(det_cos(x), std::cos(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 2.0);
  EXPECT_EQ(det_sin(0), 0);
  EXPECT_TRUE(std::signbit(det_sin(-0.0)));
  EXPECT_EQ(det_cos(0), 1);
  EXPECT_TRUE(std::isnan(det_sin(kInfinity)));
  EXPECT_TRUE(std::isnan(det_cos(0x1p31)));
}

}  // namespace
}  // namespace retro
