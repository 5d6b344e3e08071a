// Rounding to whole numbers of 4, 5 or 8 bits with one scale (and minimum) a block of 32.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "tensor/block_encoders.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

/// The whole part, as a byte. Where the inverse of a subnormal scale is infinite, so are the products: they
/// become 0, as the lowest byte of what the processor makes of them is.
int whole_byte(float value) {
  if (!(std::abs(value) < 0x1p31F)) return 0;
  return static_cast<int8_t>(static_cast<int32_t>(value));
}

float inverse(float scale) {
  return scale != 0 ? 1.0F / scale : 0.0F;
}

/// The value of the largest magnitude, the first of equal ones.
float extreme(const float* values) {
  float result = 0;
  float magnitude = 0;
  for (int i = 0; i < 32; ++i) {
    if (magnitude < std::abs(values[i])) {
      magnitude = std::abs(values[i]);
      result = values[i];
    }
  }
  return result;
}

struct Range {
  float least = FLT_MAX;
  float most = -FLT_MAX;
};

Range range_of(const float* values) {
  Range range;
  for (int i = 0; i < 32; ++i) {
    if (values[i] < range.least) range.least = values[i];
    if (values[i] > range.most) range.most = values[i];
  }
  return range;
}

/// Whole numbers for `scale·(q - 2^(bits-1))`: the extreme value becomes 0, so that its side has one number
/// more.
float quants_around_zero(const float* values, int bits, uint8_t (&quants)[32]) {
  const int middle = 1 << (bits - 1);
  const float scale = extreme(values) / static_cast<float>(-middle);
  const float factor = inverse(scale);
  const float offset = static_cast<float>(middle) + 0.5F;
  for (int i = 0; i < 32; ++i) {
    const int q = whole_byte(values[i] * factor + offset);
    quants[i] = static_cast<uint8_t>(std::min(2 * middle - 1, q));
  }
  return scale;
}

/// Whole numbers for `scale·q + minimum`.
float quants_from_minimum(const float* values, const Range& range, int bits, uint8_t (&quants)[32]) {
  const int most = (1 << bits) - 1;
  const float scale = (range.most - range.least) / static_cast<float>(most);
  const float factor = inverse(scale);
  for (int i = 0; i < 32; ++i) {
    const int q = whole_byte((values[i] - range.least) * factor + 0.5F);
    quants[i] = static_cast<uint8_t>(std::min(most, q));
  }
  return scale;
}

void pack_nibbles(const uint8_t (&quants)[32], uint8_t (&packed)[16]) {
  for (int i = 0; i < 16; ++i) {
    packed[i] = static_cast<uint8_t>((quants[i] & 15) | ((quants[i + 16] & 15) << 4));
  }
}

void pack_fifth_bits(const uint8_t (&quants)[32], uint8_t (&packed)[4]) {
  for (int i = 0; i < 4; ++i) {
    unsigned byte = 0;
    for (int bit = 0; bit < 8; ++bit) byte |= ((quants[8 * i + bit] >> 4) & 1U) << bit;
    packed[i] = static_cast<uint8_t>(byte);
  }
}

}  // namespace

void encode(const float* values, BlockQ4_0& block) {
  uint8_t quants[32];
  block.scale = f32_to_f16(quants_around_zero(values, 4, quants));
  pack_nibbles(quants, block.quants);
}

void encode(const float* values, BlockQ4_1& block) {
  uint8_t quants[32];
  const Range range = range_of(values);
  block.scale = f32_to_f16(quants_from_minimum(values, range, 4, quants));
  block.minimum = f32_to_f16(range.least);
  pack_nibbles(quants, block.quants);
}

void encode(const float* values, BlockQ5_0& block) {
  uint8_t quants[32];
  block.scale = f32_to_f16(quants_around_zero(values, 5, quants));
  pack_nibbles(quants, block.quants);
  pack_fifth_bits(quants, block.high_bits);
}

void encode(const float* values, BlockQ5_1& block) {
  uint8_t quants[32];
  const Range range = range_of(values);
  block.scale = f32_to_f16(quants_from_minimum(values, range, 5, quants));
  block.minimum = f32_to_f16(range.least);
  pack_nibbles(quants, block.quants);
  pack_fifth_bits(quants, block.high_bits);
}

void encode(const float* values, BlockQ8_0& block) {
  const float scale = std::abs(extreme(values)) / 127;
  const float factor = inverse(scale);
  block.scale = f32_to_f16(scale);
  for (int i = 0; i < 32; ++i)
    block.quants[i] = static_cast<int8_t>(whole_byte(std::round(values[i] * factor)));
}

}  // namespace retro::tensor
