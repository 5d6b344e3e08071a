// The scales and minima of Q4_K and Q5_K: 8 pairs of 6-bit numbers in 12 bytes.

#if defined(RETRO_DEVICE_CPU_DECODE_K_SCALES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_K_SCALES_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_K_SCALES_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_K_SCALES_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// scale[g] = factor·s_g and minimum[g] = -(min_factor·m_g), from the 12 bytes that tensor::unpack_scale_min
/// describes, four at a time in the bytes of a word.
HWY_INLINE void scale_min_6(const std::byte* packed, float factor, float min_factor, float* scale,
                            float* minimum) {
  uint32_t word[3];
  std::memcpy(word, packed, sizeof(word));
  constexpr uint32_t kSix = 0x3f3f3f3fU;
  constexpr uint32_t kFour = 0x0f0f0f0fU;
  constexpr uint32_t kTopTwo = 0x30303030U;
  const uint32_t scales[2] = {word[0] & kSix, (word[2] & kFour) | ((word[0] >> 2) & kTopTwo)};
  const uint32_t minima[2] = {word[1] & kSix, ((word[2] >> 4) & kFour) | ((word[1] >> 2) & kTopTwo)};
  scale_8(reinterpret_cast<const uint8_t*>(scales), factor, scale);
  scale_8(reinterpret_cast<const uint8_t*>(minima), -min_factor, minimum);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
