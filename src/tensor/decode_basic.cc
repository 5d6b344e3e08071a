// The formats with one scale a block: whole numbers of 1 to 8 bits, ternary digits.
#include "tensor/block_decoders.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

/// The 4-bit number i of 32: the 16 low nibbles first.
int nibble(const uint8_t (&quants)[16], int i) {
  return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}

/// The 5-bit number i of 32.
int five_bits(const uint8_t (&quants)[16], const uint8_t (&high_bits)[4], int i) {
  return nibble(quants, i) | (((high_bits[i / 8] >> (i % 8)) & 1) << 4);
}

/// Ternary digit t of a byte: the whole part of 3·frac(3ᵗ·b / 256).
int ternary_digit(uint8_t byte, int t) {
  constexpr unsigned kPowers[5] = {1, 3, 9, 27, 81};
  return static_cast<int>((((byte * kPowers[t]) & 255U) * 3) >> 8);
}

}  // namespace

void decode(const BlockQ4_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(nibble(block.quants, i) - 8);
}

void decode(const BlockQ4_1& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(nibble(block.quants, i)) + minimum;
}

void decode(const BlockQ5_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(five_bits(block.quants, block.high_bits, i) - 16);
  }
}

void decode(const BlockQ5_1& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(five_bits(block.quants, block.high_bits, i)) + minimum;
  }
}

void decode(const BlockQ8_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(block.quants[i]);
}

void decode(const BlockQ1_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 128; ++i) out[i] = ((block.bits[i / 8] >> (i % 8)) & 1) != 0 ? scale : -scale;
}

void decode(const BlockQ2_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 64; ++i) {
    out[i] = scale * static_cast<float>(((block.quants[i / 4] >> (2 * (i % 4))) & 3) - 1);
  }
}

void decode(const BlockTQ1_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 160; ++i) {
    out[i] = scale * static_cast<float>(ternary_digit(block.quants[i % 32], i / 32) - 1);
  }
  for (int i = 0; i < 80; ++i) {
    out[160 + i] = scale * static_cast<float>(ternary_digit(block.quants[32 + i % 16], i / 16) - 1);
  }
  for (int i = 0; i < 16; ++i) {
    out[240 + i] = scale * static_cast<float>(ternary_digit(block.last_quants[i % 4], i / 4) - 1);
  }
}

void decode(const BlockTQ2_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 256; ++i) {
    const int q = (block.quants[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
    out[i] = scale * static_cast<float>(q - 1);
  }
}

}  // namespace retro::tensor
