// The quantized blocks as they lie in a GGUF file (little endian, no padding between or inside them).
#pragma once

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

static_assert(sizeof(BlockQ4_0) == 18);
static_assert(sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176);
static_assert(sizeof(BlockQ6_K) == 210);

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

}  // namespace retro::tensor
