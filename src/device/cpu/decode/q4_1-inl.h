// Q4_1: scale·q + minimum, 4 bits a weight.

#if defined(RETRO_DEVICE_CPU_DECODE_Q4_1_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_Q4_1_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_Q4_1_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_Q4_1_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q4_1 {
  using Block = tensor::BlockQ4_1;
  static constexpr int kBlock = 32;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = true;

  static HWY_INLINE void quants(const std::byte* block, int, int8_t* out) {
    const auto packed = load_bytes(Bytes16(), block + offsetof(Block, quants));
    store_signed(low_nibbles(packed), out);
    store_signed(high_nibbles(packed), out + 16);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float* minimum) {
    *scale = half_at(block);
    *minimum = half_at(block + offsetof(Block, minimum));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
