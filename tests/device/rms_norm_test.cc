// RMS norm, both directions, against the double reference.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tests/reference/rms_norm_ref.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/finite_difference.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::Device;

std::vector<double> uniform(size_t n, const char* name, double scale = 1) {
  const RandomStream stream(5, name);
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) values.push_back(scale * (2 * static_cast<double>(stream.uniform(i)) - 1));
  return values;
}

TEST(RmsNormReference, GradientIsThatOfTheFunction) {
  const std::vector<double> x = uniform(14, "x");
  const std::vector<double> weight = uniform(7, "weight");
  const std::vector<double> dy = uniform(14, "dy");
  const auto f = [&](const std::vector<double>& at) {
    const std::vector<double> y = rms_norm_ref(at, weight, 1e-3);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  EXPECT_TRUE(matches_differences(rms_norm_back_ref(x, weight, dy, 1e-3).dx, f, x));
}

struct Case {
  int64_t rows = 5;
  int32_t groups = 1;
  int64_t width = 1;
  double offset = 0;  // added to every x
  float eps = 1e-5F;
};

class RmsNorm : public testing::TestWithParam<Case> {
 protected:
  RmsNorm() {
    const Case& c = GetParam();
    x.fill(RandomStream(1, "x"));
    if (c.offset != 0) {
      for (int64_t r = 0; r < c.rows; ++r) {
        for (int64_t i = 0; i < cols; ++i) x.set(r, i, c.offset + 1e-4 * x.get(r, i));
      }
    }
    weight.fill(RandomStream(1, "weight"), 2);
    dy.fill(RandomStream(1, "dy"));
    start.fill(RandomStream(1, "start"));
  }

  TestPass rows_of() const { return TestPass({{-1, static_cast<int32_t>(GetParam().rows)}}); }

  int64_t cols = GetParam().groups * GetParam().width;
  TestMatrix x{GetParam().rows, cols, cols + 7};
  TestMatrix weight{1, GetParam().width};
  TestMatrix dy{GetParam().rows, cols, cols + 3};
  TestMatrix start{GetParam().rows, cols};
};

TEST_P(RmsNorm, ForwardIsTheFormula) {
  const Case& c = GetParam();
  const std::vector<double> expected = rms_norm_ref(x.values(), weight.values(), c.eps);
  std::vector<double> bounds;
  for (const double y : expected) bounds.push_back(product_bound(c.width / 16 + 4, std::abs(y), y));
  const auto y = same_under_every_setting([&](Device& device) {
    TestMatrix out(c.rows, cols, cols + 5);
    const TestPass pass = rows_of();
    device.run(device::RmsNormArgs{x.matrix(), weight.matrix().f32(), out.matrix(), c.groups, c.eps},
               pass.args());
    EXPECT_TRUE(out.gaps_untouched());
    return floats(out);
  });
  EXPECT_TRUE(within(y, expected, bounds, cols));
}

TEST_P(RmsNorm, BackwardIsTheFormula) {
  const Case& c = GetParam();
  for (const bool accumulate : {false, true}) {
    RmsNormGradient expected = rms_norm_back_ref(x.values(), weight.values(), dy.values(), c.eps);
    const std::vector<double> before = start.values();
    std::vector<double> bounds;
    for (size_t i = 0; i < expected.dx.size(); ++i) {
      if (accumulate) expected.dx[i] += before[i];
      bounds.push_back(product_bound(c.width / 8 + 8, expected.magnitude[i], expected.dx[i]));
    }
    const auto dx = same_under_every_setting([&](Device& device) {
      TestMatrix out(c.rows, cols, cols + 5);
      if (accumulate) out.fill(RandomStream(1, "start"));
      const TestPass pass = rows_of();
      device.run(device::RmsNormBackArgs{x.matrix(), weight.matrix().f32(), dy.matrix(), out.matrix(),
                                         c.groups, c.eps, accumulate},
                 pass.args());
      EXPECT_TRUE(out.gaps_untouched());
      return floats(out);
    });
    EXPECT_TRUE(within(dx, expected.dx, bounds, cols)) << (accumulate ? "added" : "written");
  }
}

TEST_P(RmsNorm, InPlaceIsTheSame) {
  const Case& c = GetParam();
  const auto device = device::make_cpu_device(1);
  const TestPass pass = rows_of();
  TestMatrix y(c.rows, cols);
  TestMatrix dx(c.rows, cols);
  const float* w = weight.matrix().f32();
  device->run(device::RmsNormArgs{x.matrix(), w, y.matrix(), c.groups, c.eps}, pass.args());
  device->run(device::RmsNormBackArgs{x.matrix(), w, dy.matrix(), dx.matrix(), c.groups, c.eps, false},
              pass.args());
  device->run(device::RmsNormBackArgs{x.matrix(), w, dy.matrix(), dy.matrix(), c.groups, c.eps, false},
              pass.args());
  EXPECT_TRUE(same_bits(floats(dy), floats(dx))) << "dx over dy";
  device->run(device::RmsNormArgs{x.matrix(), w, x.matrix(), c.groups, c.eps}, pass.args());
  EXPECT_TRUE(same_bits(floats(x), floats(y))) << "y over x";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t width : sizes_around(16)) all.push_back({.width = width});
  for (const int64_t rows : {1, 2, 13}) all.push_back({.rows = rows, .width = 576});
  for (const int32_t groups : {3, 4}) all.push_back({.groups = groups, .width = groups == 3 ? 64 : 256});
  all.push_back({.width = 640, .offset = 1000});  // near-equal values: most of the gradient cancels
  all.push_back({.width = 37, .offset = -1e-12, .eps = 1e-6F});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sizes, RmsNorm, testing::ValuesIn(cases()), [](const auto& test) {
  const Case& c = test.param;
  return std::to_string(test.index) + "_rows" + std::to_string(c.rows) + "_groups" +
         std::to_string(c.groups) + "_width" + std::to_string(c.width);
});

}  // namespace
}  // namespace retro::test
