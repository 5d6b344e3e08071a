// Gated activations, both directions, against the double reference.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/reference/gated_ref.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/finite_difference.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::Activation;

double value_of(Activation a, double x) {
  return a == Activation::silu ? silu_ref(x) : gelu_tanh_ref(x);
}
double slope_of(Activation a, double x) {
  return a == Activation::silu ? silu_slope_ref(x) : gelu_tanh_slope_ref(x);
}

class Gated : public testing::TestWithParam<Activation> {
 protected:
  // Gates from -`range` to `range`, finer near zero, and the extremes.
  static TestMatrix gates(int64_t rows, int64_t cols, double range) {
    TestMatrix gate(rows, cols, cols + 3);
    gate.fill(RandomStream(1, "gate"));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) gate.set(r, c, range * std::pow(gate.get(r, c), 3));
    }
    return gate;
  }
};

TEST_P(Gated, ReferenceSlopeIsThatOfTheFunction) {
  const auto f = [](const std::vector<double>& x) { return value_of(GetParam(), x[0]); };
  for (double x = -8; x <= 8; x += 0.37) {
    EXPECT_TRUE(matches_differences({slope_of(GetParam(), x)}, f, {x})) << x;
  }
}

TEST_P(Gated, ReferenceIsThePublishedFormula) {
  const double root = std::sqrt(2 / std::acos(-1.0));
  for (double x = -6; x <= 6; x += 0.31) {
    const double gelu = 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
    const double silu = x * 0.5 * (1 + std::tanh(x / 2));
    EXPECT_NEAR(value_of(GetParam(), x), GetParam() == Activation::silu ? silu : gelu, 1e-14);
  }
}

// ε·|value| times the roundings of the chain, among them that of the exponent: e^-z is off by |z|·ε, and z by
// three roundings.
double bound(Activation a, double x, double size) {
  const double exponent = a == Activation::silu ? std::abs(x) : 1.6 * std::abs(x + 0.045 * x * x * x);
  return 0x1p-24 * (16 + 4 * exponent) * size + 1e-37;
}

TEST_P(Gated, BothDirectionsAreTheFormula) {
  for (const int64_t cols : sizes_around(16)) {
    const int64_t rows = 3;
    const TestMatrix gate = gates(rows, cols, 30);
    TestMatrix up(rows, cols, cols + 1);
    TestMatrix dout(rows, cols, cols + 2);
    up.fill(RandomStream(1, "up"));
    dout.fill(RandomStream(1, "dout"));
    std::vector<double> expected;
    std::vector<double> bounds;
    const auto expect = [&](double value, double x, double size) {
      expected.push_back(value);
      bounds.push_back(bound(GetParam(), x, size));
    };
    const auto each = [&](auto use) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) use(gate.get(r, c), up.get(r, c), dout.get(r, c));
      }
    };
    const auto value = [](double x) { return value_of(GetParam(), x); };
    // The slope is the sum of σ and x·σ·(1 - σ)·…, of opposite signs left of zero.
    const auto slope_size = [](double x) {
      const double sigmoid = x == 0 ? 0.5 : value_of(GetParam(), x) / x;
      return sigmoid + std::abs(slope_of(GetParam(), x) - sigmoid);
    };
    each([&](double g, double u, double) { expect(value(g) * u, g, std::abs(value(g) * u)); });
    each([&](double g, double u, double d) {
      expect(d * u * slope_of(GetParam(), g), g, std::abs(d * u) * slope_size(g));
    });
    each([&](double g, double, double d) { expect(d * value(g), g, std::abs(d * value(g))); });
    const TestPass pass({{-1, static_cast<int32_t>(rows)}});
    const auto actual = same_under_every_setting([&](device::Device& device) {
      TestMatrix out(rows, cols, cols + 5);
      TestMatrix dgate(rows, cols, cols + 7);
      TestMatrix dup(rows, cols, cols + 4);
      device.run(device::GatedArgs{gate.matrix(), up.matrix(), out.matrix(), GetParam()}, pass.args());
      device.run(device::GatedBackArgs{gate.matrix(), up.matrix(), dout.matrix(), dgate.matrix(),
                                       dup.matrix(), GetParam()},
                 pass.args());
      EXPECT_TRUE(out.gaps_untouched() && dgate.gaps_untouched() && dup.gaps_untouched());
      std::vector<float> all = floats(out);
      append(all, floats(dgate));
      append(all, floats(dup));
      return all;
    });
    EXPECT_TRUE(within(actual, expected, bounds, cols)) << cols << " columns";
  }
}

TEST_P(Gated, GradientsMayLieOverTheirValues) {
  const int64_t cols = 37;
  const auto device = device::make_cpu_device(2);
  const TestPass pass({{-1, 3}});
  const TestMatrix gate = gates(3, cols, 5);
  TestMatrix up(3, cols);
  TestMatrix dout(3, cols);
  TestMatrix dgate(3, cols);
  TestMatrix dup(3, cols);
  up.fill(RandomStream(1, "up"));
  dout.fill(RandomStream(1, "dout"));
  device->run(device::GatedBackArgs{gate.matrix(), up.matrix(), dout.matrix(), dgate.matrix(), dup.matrix(),
                                    GetParam()},
              pass.args());
  device->run(device::GatedBackArgs{gate.matrix(), up.matrix(), dout.matrix(), gate.matrix(), up.matrix(),
                                    GetParam()},
              pass.args());
  EXPECT_TRUE(same_bits(floats(gate), floats(dgate)));
  EXPECT_TRUE(same_bits(floats(up), floats(dup)));
}

TEST_P(Gated, FarGatesSaturate) {
  const auto device = device::make_cpu_device(1);
  const TestPass pass({{-1, 1}});
  const std::vector<double> far = {-1e38, -1e30, -1e10, -200, 200, 1e10, 1e30, 1e38};
  const auto cols = static_cast<int64_t>(far.size());
  TestMatrix gate(1, cols);
  for (int64_t c = 0; c < cols; ++c) gate.set(0, c, far[static_cast<size_t>(c)]);
  TestMatrix ones(1, cols);
  ones.fill(1.0);
  TestMatrix out(1, cols);
  TestMatrix dgate(1, cols);
  TestMatrix dup(1, cols);
  device->run(device::GatedArgs{gate.matrix(), ones.matrix(), out.matrix(), GetParam()}, pass.args());
  device->run(device::GatedBackArgs{gate.matrix(), ones.matrix(), ones.matrix(), dgate.matrix(), dup.matrix(),
                                    GetParam()},
              pass.args());
  for (int64_t c = 0; c < cols; ++c) {
    const bool positive = gate.get(0, c) > 0;
    EXPECT_EQ(out.get(0, c), positive ? gate.get(0, c) : 0.0) << gate.get(0, c);
    EXPECT_NEAR(dgate.get(0, c), positive ? 1 : 0, 1e-6) << gate.get(0, c);
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, Gated, testing::Values(Activation::silu, Activation::gelu_tanh),
                         [](const auto& test) {
                           return std::string(test.param == Activation::silu ? "silu" : "gelu_tanh");
                         });

}  // namespace
}  // namespace retro::test
