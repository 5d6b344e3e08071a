// The quantized blocks as they lie in a GGUF file (little endian, no padding between or inside them).
#pragma once

#include <bit>
#include <cstdint>

namespace retro::tensor {

/// An IEEE binary16 number as its bits.
using HalfBits = uint16_t;

/// 32 values `scale * (q - 8)`: the low nibble of quants[i] is value i, the high one value i + 16.
struct BlockQ4_0 {
  HalfBits scale;
  uint8_t quants[16];
};

/// 32 values `scale * q + minimum`, nibbles as in Q4_0.
struct BlockQ4_1 {
  HalfBits scale;
  HalfBits minimum;
  uint8_t quants[16];
};

/// 32 values `scale * (q - 16)`: nibbles as in Q4_0, bit i of the 32 high bits is the fifth bit of value i.
struct BlockQ5_0 {
  HalfBits scale;
  uint8_t high_bits[4];
  uint8_t quants[16];
};

/// 32 values `scale * q + minimum`, bits as in Q5_0.
struct BlockQ5_1 {
  HalfBits scale;
  HalfBits minimum;
  uint8_t high_bits[4];
  uint8_t quants[16];
};

/// 32 values `scale * q`.
struct BlockQ8_0 {
  HalfBits scale;
  int8_t quants[32];
};

/// 256 values in 8 groups of 32: `(scale * s) * q - (min_scale * m)` with 6-bit s and m of the group, packed
/// in `scales` (see unpack_scale_min). Group 2j is the low nibbles of quants[32j .. 32j+31], group 2j+1 the
/// high ones.
struct BlockQ4_K {
  HalfBits scale;
  HalfBits min_scale;
  uint8_t scales[12];
  uint8_t quants[128];
};

/// As Q4_K with a fifth bit: bit g of high_bits[i] belongs to value i of group g.
struct BlockQ5_K {
  HalfBits scale;
  HalfBits min_scale;
  uint8_t scales[12];
  uint8_t high_bits[32];
  uint8_t quants[128];
};

/// 256 values `(scale * scales[i / 16]) * (q - 32)` in two halves of 128 (4 runs of 32): of half h, runs 0
/// and 1 have their low nibble in the low nibbles of low_bits[64h ..] (32 each), runs 2 and 3 in the high
/// nibbles; run r has its upper two bits at bit 2r of high_bits[32h + i].
struct BlockQ6_K {
  uint8_t low_bits[128];
  uint8_t high_bits[64];
  int8_t scales[16];
  HalfBits scale;
};

/// 256 values `(scale * (s & 15)) * q - (min_scale * (s >> 4))` with one byte s of `scales` for each 16 and
/// 2-bit q: value i of chunk c (of 8 chunks of 32) is at bit 2(c % 4) of quants[32(c / 4) + i].
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t quants[64];
  HalfBits scale;
  HalfBits min_scale;
};

/// 256 values `(scale * (s - 32)) * q` with a 6-bit s for each 16 (see unpack_scales_q3_k) and q in -4 … 3:
/// two bits in `quants` as in Q2_K, less 4 where bit c of high_bits[i] is not set.
struct BlockQ3_K {
  uint8_t high_bits[32];
  uint8_t quants[64];
  uint8_t scales[12];
  HalfBits scale;
};

/// 128 values: `scale` where bit i is set (the low bit of a byte first), else `-scale`.
struct BlockQ1_0 {
  HalfBits scale;
  uint8_t bits[16];
};

/// 64 values `scale * (q - 1)`: value i is at bit 2(i % 4) of quants[i / 4].
struct BlockQ2_0 {
  HalfBits scale;
  uint8_t quants[16];
};

/// 256 values `scale * (q - 1)` with q in 0 … 2, five to a byte: digit t is the whole part of 3·frac(3ᵗ·b /
/// 256). Bytes 0-31 hold values 32t + i in their digit t, bytes 32-47 values 160 + 16t + i, the four last
/// values 240 + 4t + i in four digits.
struct BlockTQ1_0 {
  uint8_t quants[48];
  uint8_t last_quants[4];
  HalfBits scale;
};

/// 256 values `scale * (q - 1)`, q as in Q2_K.
struct BlockTQ2_0 {
  uint8_t quants[64];
  HalfBits scale;
};

/// 32 values `scale * kIq4Values[q]`, nibbles as in Q4_0.
struct BlockIQ4_NL {
  HalfBits scale;
  uint8_t quants[16];
};

/// 256 values `(scale * (s - 32)) * kIq4Values[q]` in 8 groups of 32. Of the 6-bit s of group g, the low
/// nibble is a nibble of scales_low[g / 2] (the low one first) and the upper bits are bits 2g and 2g + 1 of
/// scales_high. Group g has quants[16g …], nibbles as in Q4_0.
struct BlockIQ4_XS {
  HalfBits scale;
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t quants[128];
};

/// 32 values `2^(exponent - 128) * kE2m1Values[q]`, nibbles as in Q4_0: the OCP microscaling format MXFP4, of
/// which kE2m1Values has the numbers doubled.
struct BlockMXFP4 {
  uint8_t exponent;
  uint8_t quants[16];
};

/// 64 values `unpack_ue4m3_half(scales[g]) * kE2m1Values[q]` in 4 groups of 16. Group g has quants[8g …]: the
/// low nibbles are its first 8 values, the high ones its last.
struct BlockNVFP4 {
  uint8_t scales[4];
  uint8_t quants[32];
};

// The formats with a grid: 8 (IQ3: 4) values are an entry of a table of points, each with a sign.

/// 256 values `(scale * (0.5 + s)) * 0.25 * ±point`. Of chunk c of 32, quants[4c] and [4c + 1] are four
/// bytes, each an index into kIq2XxsGrid; the other two are a word of four 7-bit sign fields (see
/// spread_signs), the first lowest, and the 4-bit s on top.
struct BlockIQ2_XXS {
  HalfBits scale;
  uint16_t quants[32];
};

/// As IQ2_XXS, with an index of 9 bits into kIq2XsGrid and above it the 7-bit sign field for each 8 values,
/// and a nibble s for each 16, the low one first.
struct BlockIQ2_XS {
  HalfBits scale;
  uint16_t quants[32];
  uint8_t scales[8];
};

/// As IQ2_XS, with a byte of signs for each 8 values and an index of 10 bits into kIq2SGrid: the upper two of
/// entry e of chunk c are at bit 2e of high_bits[c].
struct BlockIQ2_S {
  HalfBits scale;
  uint8_t quants[32];
  uint8_t signs[32];
  uint8_t high_bits[8];
  uint8_t scales[8];
};

/// 256 values `(scale * (0.5 + s)) * 0.5 * ±point`: a byte for each 4 values is the index into kIq3XxsGrid;
/// then for each chunk of 32 a word of signs and s as in IQ2_XXS.
struct BlockIQ3_XXS {
  HalfBits scale;
  uint8_t quants[64];
  uint8_t signs_and_scales[32];
};

/// 256 values `(scale * (1 + 2s)) * ±point`: the index into kIq3SGrid has its ninth bit at bit e of
/// high_bits[c] for entry e (of 8) of chunk c; a byte of signs for each 8 values; a nibble s for each 32, the
/// low one first.
struct BlockIQ3_S {
  HalfBits scale;
  uint8_t quants[64];
  uint8_t high_bits[8];
  uint8_t signs[32];
  uint8_t scales[4];
};

/// 256 values `(scale * (2s + 1)) * (point ± 0.125)`. For each chunk of 32, `high_bits` has the upper three
/// bits of four indices into kIq1Grid at bits 0, 3, 6 and 9, s at bits 12 to 14, and in bit 15 whether 0.125
/// is taken away.
struct BlockIQ1_S {
  HalfBits scale;
  uint8_t quants[32];
  uint16_t high_bits[8];
};

/// As IQ1_S, with s for each 16 values and the shift for each 8. A nibble of high_bits for each 8 values, the
/// low one first: three upper bits of the index and the shift's sign. scales[j] has the s of four groups at
/// bits 0, 3, 6 and 9, and in its top nibble bits 4j … 4j + 3 of the half-precision scale.
struct BlockIQ1_M {
  uint8_t quants[32];
  uint8_t high_bits[16];
  uint16_t scales[4];
};

static_assert(sizeof(BlockQ4_0) == 18);
static_assert(sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110);
static_assert(sizeof(BlockQ1_0) == 18);
static_assert(sizeof(BlockQ2_0) == 18);
static_assert(sizeof(BlockTQ1_0) == 54);
static_assert(sizeof(BlockTQ2_0) == 66);
static_assert(sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockMXFP4) == 17);
static_assert(sizeof(BlockNVFP4) == 36);
static_assert(sizeof(BlockIQ2_XXS) == 66);
static_assert(sizeof(BlockIQ2_XS) == 74);
static_assert(sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ3_XXS) == 98);
static_assert(sizeof(BlockIQ3_S) == 110);
static_assert(sizeof(BlockIQ1_S) == 50);
static_assert(sizeof(BlockIQ1_M) == 56);

struct ScaleMin {
  uint8_t scale;
  uint8_t min;
};

/// The 6-bit scale and minimum of group 0 … 7 of a Q4_K or Q5_K block. Groups 0 to 3 have them in the low six
/// bits of bytes 0-3 and 4-7; groups 4 to 7 have their low four bits in bytes 8-11 (scale in the low nibble,
/// minimum in the high one) and their upper two in the top bits of bytes 0-3 and 4-7.
constexpr ScaleMin unpack_scale_min(const uint8_t (&scales)[12], int group) {
  if (group < 4) {
    return {static_cast<uint8_t>(scales[group] & 63), static_cast<uint8_t>(scales[group + 4] & 63)};
  }
  const int i = group - 4;
  return {static_cast<uint8_t>((scales[8 + i] & 15) | ((scales[i] >> 6) << 4)),
          static_cast<uint8_t>((scales[8 + i] >> 4) | ((scales[4 + i] >> 6) << 4))};
}

/// The sixteen 6-bit scales of a Q3_K block, less 32: of scale j, the low nibble is a nibble of byte j % 8
/// (the low one for j < 8) and the upper two bits are at bit 2(j / 4) of byte 8 + j % 4.
constexpr void unpack_scales_q3_k(const uint8_t (&packed)[12], int8_t (&scales)[16]) {
  for (int j = 0; j < 16; ++j) {
    const int low = (packed[j % 8] >> (4 * (j / 8))) & 15;
    const int high = (packed[8 + j % 4] >> (2 * (j / 4))) & 3;
    scales[j] = static_cast<int8_t>((low | (high << 4)) - 32);
  }
}

/// The eight 6-bit scales of an IQ4_XS block, less 32.
constexpr void unpack_scales_iq4_xs(uint16_t high, const uint8_t (&low)[4], int8_t (&scales)[8]) {
  for (int g = 0; g < 8; ++g) {
    const int nibble = (low[g / 2] >> (4 * (g % 2))) & 15;
    scales[g] = static_cast<int8_t>((nibble | (((high >> (2 * g)) & 3) << 4)) - 32);
  }
}

/// Four 7-bit sign fields of a word, the lowest first, as a byte each whose bit i is set where value i is
/// negative. The eighth sign makes the number of negative values even.
constexpr uint32_t spread_signs(uint32_t fields) {
  const uint32_t seven = (fields & 0x7fU) | ((fields << 1) & 0x7f00U) | ((fields << 2) & 0x7f0000U) |
                         ((fields << 3) & 0x7f000000U);
  uint32_t odd = seven ^ ((seven >> 4) & 0x0f0f0f0fU);
  odd ^= (odd >> 2) & 0x03030303U;
  odd ^= (odd >> 1) & 0x01010101U;
  return seven | ((odd & 0x01010101U) << 7);
}

/// 2^(exponent - 128), subnormal for 0 and 1: half the scale of an MXFP4 block, as kE2m1Values is doubled.
constexpr float unpack_e8m0_half(uint8_t exponent) {
  const uint32_t bits = exponent < 2 ? 0x00200000U << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

/// Half of an unsigned number of 4 exponent and 3 fraction bits (bias 7; 0x7f, which would be NaN, is 0; the
/// top bit is not looked at otherwise).
constexpr float unpack_ue4m3_half(uint8_t code) {
  if (code == 0x7f) return 0;
  const uint32_t exponent = (code >> 3) & 15U;
  const uint32_t fraction = code & 7U;
  if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10F;
  return std::bit_cast<float>(((exponent + 119) << 23) | (fraction << 20));
}

/// The half-precision scale of an IQ1_M block, whose nibbles are on top of its four words of scales.
constexpr HalfBits unpack_scale_iq1_m(const uint16_t (&scales)[4]) {
  unsigned bits = 0;
  for (int j = 0; j < 4; ++j) bits |= static_cast<unsigned>(scales[j] >> 12) << (4 * j);
  return static_cast<HalfBits>(bits);
}

}  // namespace retro::tensor
