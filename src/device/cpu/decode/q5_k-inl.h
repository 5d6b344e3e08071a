// Q5_K: (scale·s)·q - (min_scale·m), 5 bits a weight, s and m for each 32.

#if defined(RETRO_DEVICE_CPU_DECODE_Q5_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_Q5_K_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_Q5_K_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_Q5_K_INL_H_
#endif

#include "device/cpu/decode/k_scales-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q5_K {
  using Block = tensor::BlockQ5_K;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = true;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* packed = block + offsetof(Block, quants) + 32 * (chunk / 2);
    const auto bit = hn::Set(Bytes32(), static_cast<uint8_t>(1 << chunk));
    const auto fifth = hn::Set(Bytes32(), uint8_t{16});
    for (int i = 0; i < 32; i += kBytes32) {
      const auto pair = load_bytes(Bytes32(), packed + i);
      const auto four = chunk % 2 == 0 ? low_nibbles(pair) : high_nibbles(pair);
      const auto set = hn::TestBit(load_bytes(Bytes32(), block + offsetof(Block, high_bits) + i), bit);
      store_signed(hn::Or(four, hn::IfThenElseZero(set, fifth)), out + i);
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
