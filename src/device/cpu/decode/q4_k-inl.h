// Q4_K: (scale·s)·q - (min_scale·m), 4 bits a weight, s and m for each 32.

#if defined(RETRO_DEVICE_CPU_DECODE_Q4_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_Q4_K_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_Q4_K_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_Q4_K_INL_H_
#endif

#include "device/cpu/decode/k_scales-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q4_K {
  using Block = tensor::BlockQ4_K;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = true;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* packed = block + offsetof(Block, quants) + 32 * (chunk / 2);
    for (int i = 0; i < 32; i += kBytes32) {
      const auto pair = load_bytes(Bytes32(), packed + i);
      store_signed(chunk % 2 == 0 ? low_nibbles(pair) : high_nibbles(pair), out + i);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float* minimum) {
    scale_min_6(block + offsetof(Block, scales), half_at(block), half_at(block + offsetof(Block, min_scale)),
                scale, minimum);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
