// 16-bit floating-point numbers to and from f32, in integer arithmetic: the same bits on every CPU.
#pragma once

#include <bit>
#include <cstdint>

namespace retro::tensor {

/// IEEE binary16 to binary32, exact; a NaN keeps its sign and payload.
constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 31U;
  const uint32_t fraction = half & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // A subnormal is fraction * 2^-24, which f32 holds exactly.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

/// binary32 to IEEE binary16, to nearest, ties to even; beyond the largest half: infinity; a NaN stays one
/// (quiet).
constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x47800000U) return static_cast<uint16_t>(sign | 0x7c00U);  // 2^16 and up
  uint32_t kept = 0;
  uint32_t rest = 0;
  uint32_t halfway = 0;
  if (magnitude >= 0x38800000U) {  // 2^-14: a normal half; a carry out of the fraction raises the exponent
    kept = (magnitude >> 13) - (112U << 10);
    rest = magnitude & 0x1fffU;
    halfway = 0x1000U;
  } else {
    const uint32_t shift = 126U - (magnitude >> 23);  // 14 at 2^-15; in units of 2^-24
    if (shift > 24) return sign;                      // below half of the smallest subnormal
    const uint32_t fraction = (magnitude & 0x7fffffU) | 0x800000U;
    kept = fraction >> shift;
    rest = fraction & ((1U << shift) - 1);
    halfway = 1U << (shift - 1);
  }
  if (rest > halfway || (rest == halfway && (kept & 1U) != 0)) ++kept;
  return static_cast<uint16_t>(sign | kept);
}

/// bfloat16 to binary32, exact.
constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// binary32 to bfloat16, to nearest, ties to even; a NaN stays one (quiet).
constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace retro::tensor
