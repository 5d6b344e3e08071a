// Rotary embedding against complex multiplication in double.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::RopeStyle;

struct Case {
  int32_t heads = 3;
  int32_t head_dim = 64;
  int32_t dims = 64;
  RopeStyle style = RopeStyle::half;
  bool inverse = false;
};

class Rope : public testing::TestWithParam<Case> {
 protected:
  Rope() : x(9, cols(), cols() + 3), table(20, GetParam().dims) {
    x.fill(RandomStream(1, "x"));
    for (int64_t p = 0; p < table.rows(); ++p) {
      for (int32_t i = 0; i < pairs(); ++i) {
        const double angle = static_cast<double>(p) * std::pow(10000.0, -2.0 * i / GetParam().dims);
        table.set(p, i, std::cos(angle));
        table.set(p, pairs() + i, std::sin(angle));
      }
    }
  }

  static int32_t pairs() { return GetParam().dims / 2; }
  static int64_t cols() { return int64_t{GetParam().heads} * GetParam().head_dim; }

  device::RopeArgs args(const TestMatrix& from, const TestMatrix& to, bool inverse) const {
    const Case& c = GetParam();
    return {from.matrix(), to.matrix(), table.matrix().f32(), c.heads, c.head_dim, c.dims, c.style, inverse};
  }

  // x·e^(±iθ) for each pair.
  std::vector<double> expected() const {
    const Case& c = GetParam();
    std::vector<double> y = x.values();
    for (int64_t r = 0; r < x.rows(); ++r) {
      const int64_t position = pass.positions[static_cast<size_t>(r)];
      for (int32_t h = 0; h < c.heads; ++h) {
        for (int32_t i = 0; i < pairs(); ++i) {
          const bool half = c.style == RopeStyle::half;
          const size_t a = static_cast<size_t>(r * cols() + h * c.head_dim + (half ? i : 2 * i));
          const size_t b = half ? a + static_cast<size_t>(pairs()) : a + 1;
          const std::complex<double> turn(table.get(position, i), table.get(position, pairs() + i));
          const auto turned = std::complex<double>(y[a], y[b]) * (c.inverse ? std::conj(turn) : turn);
          y[a] = turned.real();
          y[b] = turned.imag();
        }
      }
    }
    return y;
  }

  // Two sequences, the second read from its third token on.
  TestPass pass{{{-1, 4}, {-1, 8, 3, 8}}};
  TestMatrix x;
  TestMatrix table;
};

TEST_P(Rope, TurnsEachPairByItsAngle) {
  const std::vector<double> reference = expected();
  const std::vector<double> bounds(reference.size(), 4 * 0x1p-24);  // |x|, |cos|, |sin| <= 1
  const auto y = same_under_every_setting([&](device::Device& device) {
    TestMatrix out(x.rows(), cols(), cols() + 5);
    device.run(args(x, out, GetParam().inverse), pass.args());
    EXPECT_TRUE(out.gaps_untouched());
    TestMatrix in_place(x.rows(), cols());
    for (int64_t r = 0; r < x.rows(); ++r) {
      for (int64_t i = 0; i < cols(); ++i) in_place.set(r, i, x.get(r, i));
    }
    device.run(args(in_place, in_place, GetParam().inverse), pass.args());
    EXPECT_TRUE(same_bits(floats(in_place), floats(out))) << "in place";
    return floats(out);
  });
  EXPECT_TRUE(within(y, reference, bounds, cols()));
}

// The gradient of a rotation is the rotation back: ⟨rope(x), dy⟩ = ⟨x, rope⁻¹(dy)⟩.
TEST_P(Rope, InverseIsTheTranspose) {
  const auto device = device::make_cpu_device(1);
  TestMatrix y(x.rows(), cols());
  TestMatrix dy(x.rows(), cols());
  TestMatrix dx(x.rows(), cols());
  dy.fill(RandomStream(1, "dy"));
  device->run(args(x, y, GetParam().inverse), pass.args());
  device->run(args(dy, dx, !GetParam().inverse), pass.args());
  double forward = 0;
  double backward = 0;
  for (size_t i = 0; i < y.values().size(); ++i) {
    forward += y.values()[i] * dy.values()[i];
    backward += x.values()[i] * dx.values()[i];
  }
  EXPECT_NEAR(forward, backward, 1e-5);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const RopeStyle style : {RopeStyle::half, RopeStyle::interleaved}) {
    for (const bool inverse : {false, true}) {
      all.push_back({3, 64, 64, style, inverse});
      all.push_back({1, 256, 256, style, inverse});
      all.push_back({2, 80, 32, style, inverse});  // partial
      for (const int32_t dims : {2, 6, 14, 16, 18, 30, 34})
        all.push_back({3, dims + 1, dims, style, inverse});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rope, testing::ValuesIn(cases()), [](const auto& test) {
  const Case& c = test.param;
  return std::string(c.style == RopeStyle::half ? "half" : "interleaved") + (c.inverse ? "_back_" : "_") +
         std::to_string(c.dims) + "_of_" + std::to_string(c.head_dim);
});

}  // namespace
}  // namespace retro::test
