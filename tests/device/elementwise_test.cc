// Sums, copies between dtypes and zeros: exact, or rounded once to nearest.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tensor/half.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::DType;

TEST(Add, IsTheRoundedSum) {
  for (const int64_t cols : sizes_around(16)) {
    const TestPass pass({{-1, 4}});
    const TestMatrix a = filled(4, cols, cols + 3, Fill::real, 1);
    const TestMatrix b = filled(4, cols, cols + 1, Fill::real, 2);
    const auto sum = same_under_every_setting([&](device::Device& device) {
      TestMatrix out(4, cols, cols + 5);
      device.run(device::AddArgs{a.matrix(), b.matrix(), out.matrix()}, pass.args());
      EXPECT_TRUE(out.gaps_untouched());
      return floats(out);
    });
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        EXPECT_EQ(sum[static_cast<size_t>(r * cols + c)], static_cast<float>(a.get(r, c) + b.get(r, c)));
      }
    }
  }
}

TEST(Add, MayWriteOverEitherTerm) {
  const TestPass pass({{-1, 4}});
  const auto device = device::make_cpu_device(2);
  const TestMatrix a = filled(4, 21, 21, Fill::exact, 1);
  const TestMatrix b = filled(4, 21, 21, Fill::exact, 2);
  TestMatrix out(4, 21);
  device->run(device::AddArgs{a.matrix(), b.matrix(), out.matrix()}, pass.args());
  TestMatrix over_a = filled(4, 21, 21, Fill::exact, 1);
  device->run(device::AddArgs{over_a.matrix(), b.matrix(), over_a.matrix()}, pass.args());
  device->run(device::AddArgs{a.matrix(), b.matrix(), b.matrix()}, pass.args());
  EXPECT_TRUE(same_bits(floats(over_a), floats(out)));
  EXPECT_TRUE(same_bits(floats(b), floats(out)));
}

TEST(Add, AddsARowOfStrideZeroToEach) {
  for (const int64_t cols : sizes_around(16)) {
    const TestPass pass({{-1, 4}});
    const TestMatrix a = filled(4, cols, cols + 3, Fill::real, 1);
    const TestMatrix bias = filled(1, cols, cols, Fill::real, 2);
    device::Matrix row = bias.matrix();
    row.stride = 0;
    const auto sum = same_under_every_setting([&](device::Device& device) {
      TestMatrix out(4, cols, cols + 5);
      device.run(device::AddArgs{a.matrix(), row, out.matrix()}, pass.args());
      EXPECT_TRUE(out.gaps_untouched());
      return floats(out);
    });
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        EXPECT_EQ(sum[static_cast<size_t>(r * cols + c)], static_cast<float>(a.get(r, c) + bias.get(0, c)));
      }
    }
  }
}

TEST(Split, TakesColumnsAndJoinPutsThemBack) {
  const std::vector<std::vector<int64_t>> widths = {{1}, {16, 17}, {5, 1, 31}, {64, 32, 32}};
  for (const auto& parts : widths) {
    const int64_t cols = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    const TestPass pass({{-1, 4}});
    const TestMatrix whole = filled(4, cols, cols + 3, Fill::real, 1);
    const auto joined = same_under_every_setting([&](device::Device& device) {
      std::vector<TestMatrix> pieces;
      device::SplitArgs split;
      split.whole = whole.matrix();
      for (size_t i = 0; i < parts.size(); ++i) {
        pieces.emplace_back(4, parts[i], parts[i] + 2);
        split.parts[i] = pieces.back().matrix();
      }
      device.run(split, pass.args());
      int64_t begin = 0;
      for (const TestMatrix& piece : pieces) {
        EXPECT_TRUE(piece.gaps_untouched());
        for (int64_t r = 0; r < 4; ++r) {
          for (int64_t c = 0; c < piece.cols(); ++c) EXPECT_EQ(piece.get(r, c), whole.get(r, begin + c));
        }
        begin += piece.cols();
      }
      TestMatrix again(4, cols, cols + 1);
      split.whole = again.matrix();
      split.join = true;
      device.run(split, pass.args());
      EXPECT_TRUE(again.gaps_untouched());
      return floats(again);
    });
    EXPECT_TRUE(same_bits(joined, floats(whole)));
  }
}

TEST(Copy, RoundsToNearestBetweenAllFloatTypes) {
  const std::vector<DType> types = {DType::F32, DType::F16, DType::BF16};
  for (const DType from : types) {
    for (const DType to : types) {
      for (const int64_t cols : {1, 15, 16, 17, 100}) {
        const TestPass pass({{-1, 3}});
        TestMatrix source(3, cols, cols + 3, from);
        TestMatrix expected(3, cols, cols, to);
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t c = 0; c < cols; ++c) {
            // Ties, subnormal halves, and what overflows a half.
            const double magnitudes[] = {1 + 0x1p-11,
                                         1 + 3 * 0x1p-11,
                                         1 + 0x1p-8,
                                         0x1.8p-25,
                                         0x1p-15 + 0x1p-25,
                                         65519,
                                         65520,
                                         1e30,
                                         0.1 * static_cast<double>(c),
                                         0};
            source.set(r, c, (c % 2 == 0 ? 1 : -1) * magnitudes[(r + c) % 10]);
            expected.set(r, c, source.get(r, c));  // by the scalar conversions of the tensor layer
          }
        }
        same_under_every_setting([&](device::Device& device) {
          TestMatrix target(3, cols, cols + 5, to);
          device.run(device::CopyArgs{source.matrix(), target.matrix()}, pass.args());
          EXPECT_TRUE(target.gaps_untouched());
          EXPECT_EQ(target.bytes(), expected.bytes())
              << tensor::dtype_name(from) << " to " << tensor::dtype_name(to);
          return std::vector<float>{1};
        });
      }
    }
  }
}

TEST(Copy, KeepsEveryHalfThroughF32) {
  TestMatrix halves(256, 256, 256, DType::F16);
  for (int64_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(static_cast<std::byte*>(halves.matrix().data) + 2 * i, &bits, 2);
  }
  const TestPass pass({{-1, 256}});
  const auto device = device::make_cpu_device(1);
  TestMatrix singles(256, 256);
  TestMatrix back(256, 256, 256, DType::F16);
  device->run(device::CopyArgs{halves.matrix(), singles.matrix()}, pass.args());
  device->run(device::CopyArgs{singles.matrix(), back.matrix()}, pass.args());
  for (int64_t i = 0; i < 65536; ++i) {
    const float expected = tensor::f16_to_f32(static_cast<uint16_t>(i));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(back.get(i / 256, i % 256))) << i;
      continue;
    }
    EXPECT_EQ(singles.get(i / 256, i % 256), expected) << i;
    EXPECT_EQ(back.get(i / 256, i % 256), expected) << i;
  }
}

TEST(Zero, ClearsTheRowsItIsToldAndNoMore) {
  for (const DType dtype : {DType::F32, DType::F16}) {
    for (const int64_t told : {0, 2, 6}) {
      const TestPass pass({{-1, 4}});
      const auto device = device::make_cpu_device(2);
      TestMatrix to(7, 5, 9, dtype);
      device->run(device::ZeroArgs{to.matrix(), told}, pass.args());
      const int64_t cleared = told == 0 ? 4 : told;
      for (int64_t r = 0; r < 7; ++r) {
        for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(to.get(r, c) == 0, r < cleared) << r << ", " << c;
      }
      EXPECT_TRUE(to.gaps_untouched());
    }
  }
}

}  // namespace
}  // namespace retro::test
