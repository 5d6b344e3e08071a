// The formats whose values stand in a table: 16 levels, or points of a grid with signs beside them.
#include <cstddef>

#include "tensor/block_decoders.h"
#include "tensor/codebooks.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

/// `count` level numbers in nibbles: the low ones first.
void decode_levels(const int8_t (&levels)[16], const uint8_t* quants, int count, float scale, float* out) {
  for (int i = 0; i < count / 2; ++i) {
    out[i] = scale * static_cast<float>(levels[quants[i] & 15]);
    out[count / 2 + i] = scale * static_cast<float>(levels[quants[i] >> 4]);
  }
}

/// The coordinates of a point, negative where a bit of `signs` is set.
template <typename Word>
void decode_point(Word point, unsigned signs, float scale, float* out) {
  for (size_t i = 0; i < sizeof(Word); ++i) {
    const auto coordinate = static_cast<float>((point >> (8 * i)) & 255U);
    out[i] = scale * (((signs >> i) & 1U) != 0 ? -coordinate : coordinate);
  }
}

uint32_t word_of(uint16_t low, uint16_t high) {
  return low | (static_cast<uint32_t>(high) << 16);
}

uint32_t word_at(const uint8_t* bytes) {
  return bytes[0] | (static_cast<uint32_t>(bytes[1]) << 8) | (static_cast<uint32_t>(bytes[2]) << 16) |
         (static_cast<uint32_t>(bytes[3]) << 24);
}

/// Nibble i, the low one of a byte first.
float nibble(const uint8_t* bytes, int i) {
  return static_cast<float>((bytes[i / 2] >> (4 * (i % 2))) & 15);
}

/// Entry `index` of the ternary grid, whose points are moved by an eighth.
void decode_ternary(size_t index, bool down, float scale, float* out) {
  const uint64_t point = kIq1Grid[index];
  const float shift = down ? -0.125F : 0.125F;
  for (int i = 0; i < 8; ++i) {
    const int coordinate = static_cast<int>((point >> (8 * i)) & 255U) / 8 - 1;
    out[i] = scale * (static_cast<float>(coordinate) + shift);
  }
}

}  // namespace

void decode(const BlockIQ4_NL& block, float* out) {
  decode_levels(kIq4Values, block.quants, 32, f16_to_f32(block.scale), out);
}

void decode(const BlockIQ4_XS& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  int8_t scales[8];
  unpack_scales_iq4_xs(block.scales_high, block.scales_low, scales);
  for (int g = 0; g < 8; ++g) {
    decode_levels(kIq4Values, block.quants + 16 * g, 32, scale * static_cast<float>(scales[g]), out + 32 * g);
  }
}

void decode(const BlockMXFP4& block, float* out) {
  decode_levels(kE2m1Values, block.quants, 32, unpack_e8m0_half(block.exponent), out);
}

void decode(const BlockNVFP4& block, float* out) {
  for (int g = 0; g < 4; ++g) {
    decode_levels(kE2m1Values, block.quants + 8 * g, 16, unpack_ue4m3_half(block.scales[g]), out + 16 * g);
  }
}

void decode(const BlockIQ2_XXS& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int c = 0; c < 8; ++c) {
    const uint32_t indices = word_of(block.quants[4 * c], block.quants[4 * c + 1]);
    const uint32_t fields = word_of(block.quants[4 * c + 2], block.quants[4 * c + 3]);
    const uint32_t signs = spread_signs(fields);
    const float group_scale = scale * (0.5F + static_cast<float>(fields >> 28)) * 0.25F;
    for (int e = 0; e < 4; ++e) {
      const uint64_t point = kIq2XxsGrid[(indices >> (8 * e)) & 255U];
      decode_point(point, signs >> (8 * e), group_scale, out + 32 * c + 8 * e);
    }
  }
}

void decode(const BlockIQ2_XS& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int e = 0; e < 32; ++e) {
    const float group_scale = scale * (0.5F + nibble(block.scales, e / 2)) * 0.25F;
    const uint32_t signs = spread_signs(block.quants[e] >> 9);
    decode_point(kIq2XsGrid[block.quants[e] & 511U], signs, group_scale, out + 8 * e);
  }
}

void decode(const BlockIQ2_S& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int e = 0; e < 32; ++e) {
    const float group_scale = scale * (0.5F + nibble(block.scales, e / 2)) * 0.25F;
    const unsigned high = (block.high_bits[e / 4] >> (2 * (e % 4))) & 3U;
    decode_point(kIq2SGrid[block.quants[e] | (high << 8)], block.signs[e], group_scale, out + 8 * e);
  }
}

void decode(const BlockIQ3_XXS& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int c = 0; c < 8; ++c) {
    const uint32_t fields = word_at(block.signs_and_scales + 4 * c);
    const uint32_t signs = spread_signs(fields);
    const float group_scale = scale * (0.5F + static_cast<float>(fields >> 28)) * 0.5F;
    for (int e = 0; e < 8; ++e) {
      decode_point(kIq3XxsGrid[block.quants[8 * c + e]], signs >> (4 * e), group_scale, out + 32 * c + 4 * e);
    }
  }
}

void decode(const BlockIQ3_S& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int c = 0; c < 8; ++c) {
    const float group_scale = scale * (1 + 2 * nibble(block.scales, c));
    const uint32_t signs = word_at(block.signs + 4 * c);
    for (int e = 0; e < 8; ++e) {
      const unsigned high = (block.high_bits[c] >> e) & 1U;
      const uint32_t point = kIq3SGrid[block.quants[8 * c + e] | (high << 8)];
      decode_point(point, signs >> (4 * e), group_scale, out + 32 * c + 4 * e);
    }
  }
}

void decode(const BlockIQ1_S& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int e = 0; e < 32; ++e) {
    const unsigned bits = block.high_bits[e / 4];
    const float group_scale = scale * static_cast<float>(2 * ((bits >> 12) & 7U) + 1);
    const unsigned high = (bits >> (3 * (e % 4))) & 7U;
    decode_ternary(block.quants[e] | (high << 8), (bits & 0x8000U) != 0, group_scale, out + 8 * e);
  }
}

void decode(const BlockIQ1_M& block, float* out) {
  const float scale = f16_to_f32(unpack_scale_iq1_m(block.scales));
  for (int e = 0; e < 32; ++e) {
    const unsigned bits = (block.high_bits[e / 2] >> (4 * (e % 2))) & 15U;
    const unsigned s = (block.scales[e / 8] >> (3 * (e / 2 % 4))) & 7U;
    const float group_scale = scale * static_cast<float>(2 * s + 1);
    decode_ternary(block.quants[e] | ((bits & 7U) << 8), (bits & 8U) != 0, group_scale, out + 8 * e);
  }
}

}  // namespace retro::tensor
