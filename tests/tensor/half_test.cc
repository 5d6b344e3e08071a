#include "tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace retro::tensor {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A finite binary16's value by the definition of the format: (-1)^s 2^(e-15) (1 + f/1024), or (-1)^s 2^-14
/// f/1024.
double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(uint16_t half) {
  return (half & 0x7fff) > 0x7c00;
}

TEST(Half, EveryBinary16HasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (is_nan(half)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(f32_to_f16(value), half | 0x200) << bits;
      continue;
    }
    if ((half & 0x7fff) == 0x7c00) {
      EXPECT_EQ(value, (half & 0x8000) != 0 ? -kInfinity : kInfinity);
    } else {
      EXPECT_EQ(static_cast<double>(value), half_value(half)) << bits;
      EXPECT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
    }
    EXPECT_EQ(f32_to_f16(value), half) << bits;
  }
}

TEST(Half, RoundsToNearestWithTiesToEven) {
  // Between each two neighbours: just below the middle, the middle, just above it.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const auto middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
    const uint16_t even = (low & 1) == 0 ? low : high;
    EXPECT_EQ(f32_to_f16(middle), even) << bits;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), low) << bits;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), high) << bits;
    EXPECT_EQ(f32_to_f16(-middle), even | 0x8000) << bits;
  }
}

TEST(Half, TheEndsOfTheRange) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);  // halfway to 2^16, which is even
  EXPECT_EQ(f32_to_f16(1e30F), 0x7c00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xfc00);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0);  // halfway to the smallest subnormal: even is zero
  EXPECT_EQ(f32_to_f16(std::nextafter(0x1p-25F, 1.0F)), 1);
  EXPECT_EQ(f32_to_f16(0x1p-149F), 0);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
}

TEST(BFloat16, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = bf16_to_f32(half);
    EXPECT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    EXPECT_EQ(f32_to_bf16(value), std::isnan(value) ? half | 0x40 : half) << bits;
  }
}

TEST(BFloat16, RoundsToNearestWithTiesToEven) {
  const RandomStream random(1, "bf16");
  for (uint64_t i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random.bits(i)) & 0x7fffffffU;
    const float value = std::bit_cast<float>(bits);
    if (!(value < 3e38F)) continue;
    const auto low = static_cast<uint16_t>(bits >> 16);
    const double down = static_cast<double>(value) - static_cast<double>(bf16_to_f32(low));
    const double up =
        static_cast<double>(bf16_to_f32(static_cast<uint16_t>(low + 1))) - static_cast<double>(value);
    const uint16_t nearest =
        down < up || (down == up && (low & 1) == 0) ? low : static_cast<uint16_t>(low + 1);
    EXPECT_EQ(f32_to_bf16(value), nearest) << bits;
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace retro::tensor
