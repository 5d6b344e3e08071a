// Q8_0: scale·q, 8 bits a weight.

#if defined(RETRO_DEVICE_CPU_DECODE_Q8_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_Q8_0_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_Q8_0_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_Q8_0_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q8_0 {
  using Block = tensor::BlockQ8_0;
  static constexpr int kBlock = 32;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int, int8_t* out) {
    std::memcpy(out, block + offsetof(Block, quants), 32);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) { *scale = half_at(block); }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
