// Q5_0: scale·(q - 16), 5 bits a weight.

#if defined(RETRO_DEVICE_CPU_DECODE_Q5_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_Q5_0_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_Q5_0_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_Q5_0_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q5_0 {
  using Block = tensor::BlockQ5_0;
  static constexpr int kBlock = 32;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int, int8_t* out) {
    const auto packed = load_bytes(Bytes16(), block + offsetof(Block, quants));
    const auto offset = hn::Set(Bytes16(), uint8_t{16});
    const std::byte* high = block + offsetof(Block, high_bits);
    store_signed(hn::Sub(hn::Or(low_nibbles(packed), spread_bits(high, 16)), offset), out);
    store_signed(hn::Sub(hn::Or(high_nibbles(packed), spread_bits(high + 2, 16)), offset), out + 16);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) { *scale = half_at(block); }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
