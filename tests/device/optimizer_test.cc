// AdamW, SGD and the norm of a gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "tests/reference/optimizer_ref.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/linear_case.h"

namespace retro::test {
namespace {

std::vector<float> uniform(size_t n, const char* name, double scale = 1) {
  const RandomStream stream(9, name);
  std::vector<float> values;
  for (size_t i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(scale * (2 * static_cast<double>(stream.uniform(i)) - 1)));
  }
  return values;
}

TEST(AdamW, FollowsThePublishedUpdateForTwentySteps) {
  const size_t n = 5003;
  const AdamWRates rates{1e-2F, 0.9F, 0.999F, 1e-8F, 0.1F};
  const float clip = 0.37F;
  std::vector<AdamWState> reference(n);
  const std::vector<float> start = uniform(n, "w");
  for (size_t i = 0; i < n; ++i) reference[i].w = start[i];
  for (int64_t step = 1; step <= 20; ++step) {
    const std::vector<float> g = uniform(n, "gradients", 1.0 / static_cast<double>(step));
    for (size_t i = 0; i < n; ++i) adamw_ref(reference[i], static_cast<double>(clip) * g[i], rates, step);
  }
  const auto actual = same_under_every_setting([&](device::Device& device) {
    std::vector<float> w = start;
    std::vector<float> m(n);
    std::vector<float> v(n);
    for (int64_t step = 1; step <= 20; ++step) {
      const std::vector<float> g = uniform(n, "gradients", 1.0 / static_cast<double>(step));
      device.adamw({.weights = w,
                    .gradients = g,
                    .m = m,
                    .v = v,
                    .lr = static_cast<float>(rates.lr),
                    .beta1 = static_cast<float>(rates.beta1),
                    .beta2 = static_cast<float>(rates.beta2),
                    .eps = static_cast<float>(rates.eps),
                    .weight_decay = static_cast<float>(rates.weight_decay),
                    .gradient_scale = clip,
                    .step = step});
    }
    append(w, m);
    append(w, v);
    return w;
  });
  std::vector<double> expected;
  std::vector<double> bounds;
  const auto expect = [&](double value, double size) {
    expected.push_back(value);
    bounds.push_back(product_bound(40, size, value));
  };
  for (const AdamWState& s : reference) expect(s.w, 1);
  for (const AdamWState& s : reference) expect(s.m, 0.37);
  for (const AdamWState& s : reference) expect(s.v, s.v);
  EXPECT_TRUE(within(actual, expected, bounds));
}

// The first step of AdamW from rest moves every weight by lr against the sign of its gradient, whatever its
// size.
TEST(AdamW, FirstStepIsTheSignOfTheGradient) {
  const auto device = device::make_cpu_device(1);
  const std::vector<float> g = {1e-3F, -7.0F, 250.0F, -1e-4F, 0.0F};
  std::vector<float> w(g.size());
  std::vector<float> m(g.size());
  std::vector<float> v(g.size());
  device->adamw({.weights = w,
                 .gradients = g,
                 .m = m,
                 .v = v,
                 .lr = 0.5F,
                 .beta1 = 0.9F,
                 .beta2 = 0.999F,
                 .eps = 1e-12F});
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_NEAR(w[i], g[i] == 0 ? 0 : (g[i] > 0 ? -0.5 : 0.5), 1e-6) << i;
  }
}

// w is moved by lr·decay·w with a gradient of zero (decoupled decay), and not at all without decay.
TEST(AdamW, DecaysWeightsApartFromTheGradient) {
  const auto device = device::make_cpu_device(1);
  const std::vector<float> g(3);
  for (const float decay : {0.0F, 0.5F}) {
    std::vector<float> w = {1, -2, 4};
    std::vector<float> m(3);
    std::vector<float> v(3);
    device->adamw({.weights = w,
                   .gradients = g,
                   .m = m,
                   .v = v,
                   .lr = 0.25F,
                   .beta1 = 0.9F,
                   .beta2 = 0.99F,
                   .eps = 1e-8F,
                   .weight_decay = decay});
    const float keep = 1 - 0.25F * decay;
    EXPECT_EQ(w, (std::vector<float>{keep, -2 * keep, 4 * keep}));
  }
}

TEST(Sgd, IsAStepDownTheGradient) {
  const std::vector<float> start = uniform(2051, "w");
  const std::vector<float> g = uniform(2051, "g");
  const auto actual = same_under_every_setting([&](device::Device& device) {
    std::vector<float> w = start;
    device.sgd({.weights = w, .gradients = g, .lr = 0.1F, .weight_decay = 0.2F, .gradient_scale = 0.5F});
    return w;
  });
  std::vector<double> expected;
  std::vector<double> bounds;
  for (size_t i = 0; i < start.size(); ++i) {
    const double w = start[i];
    expected.push_back(w - 0.1F * (0.5 * g[i] + static_cast<double>(0.2F) * w));
    bounds.push_back(product_bound(0, 1, expected.back(), 2));
  }
  EXPECT_TRUE(within(actual, expected, bounds));
}

TEST(SumOfSquares, IsThatOfTheValues) {
  for (const int64_t n : {0, 1, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 100003}) {
    const std::vector<float> values = uniform(static_cast<size_t>(n), "values", 3);
    long double expected = 0;
    for (const float v : values) expected += static_cast<long double>(v) * v;
    std::vector<double> sums;
    same_under_every_setting([&](device::Device& device) {
      sums.push_back(device.sum_of_squares(values));
      return std::vector<float>{1};
    });
    for (const double sum : sums) EXPECT_EQ(sum, sums[0]) << n;
    EXPECT_NEAR(sums[0], static_cast<double>(expected), 1e-13 * static_cast<double>(expected)) << n;
  }
}

TEST(SumOfSquares, OfIntegersIsExact) {
  const auto device = device::make_cpu_device(2);
  std::vector<float> values;
  double expected = 0;
  for (int i = 1; i <= 5000; ++i) {
    values.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
    expected += static_cast<double>(i) * i;
  }
  EXPECT_EQ(device->sum_of_squares(values), expected);
}

TEST(SumOfSquares, IsNotFiniteWhereAValueIsNot) {
  const auto device = device::make_cpu_device(2);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {size_t{0}, size_t{1000}, size_t{4999}}) {
      std::vector<float> values(5000, 1.0F);
      values[at] = bad;
      EXPECT_FALSE(std::isfinite(device->sum_of_squares(values)));
    }
  }
  // Squares beyond f32 are finite in double.
  EXPECT_DOUBLE_EQ(device->sum_of_squares(std::vector<float>{1e30F}), static_cast<double>(1e30F) * 1e30F);
}

}  // namespace
}  // namespace retro::test
