// Q6_K: (scale·s)·(q - 32), 6 bits a weight, s for each 16.

#if defined(RETRO_DEVICE_CPU_DECODE_Q6_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_Q6_K_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_Q6_K_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_Q6_K_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q6_K {
  using Block = tensor::BlockQ6_K;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;

  /// Bits 2·run and 2·run + 1 of each byte, as bits 4 and 5. The mask goes first, so that shifts of 16 bits
  /// move nothing from byte to byte.
  template <class V>
  static HWY_INLINE V top_two(V packed, int run) {
    const hn::Repartition<uint16_t, Bytes32> wide;
    const auto kept =
        hn::BitCast(wide, hn::And(packed, hn::Set(Bytes32(), static_cast<uint8_t>(3 << (2 * run)))));
    if (run == 0) return hn::BitCast(Bytes32(), hn::ShiftLeft<4>(kept));
    if (run == 1) return hn::BitCast(Bytes32(), hn::ShiftLeft<2>(kept));
    if (run == 2) return hn::BitCast(Bytes32(), kept);
    return hn::BitCast(Bytes32(), hn::ShiftRight<2>(kept));
  }

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const int half = chunk / 4;
    const int run = chunk % 4;
    const std::byte* low = block + offsetof(Block, low_bits) + 64 * half + 32 * (run % 2);
    const std::byte* high = block + offsetof(Block, high_bits) + 32 * half;
    const auto offset = hn::Set(Bytes32(), uint8_t{32});
    for (int i = 0; i < 32; i += kBytes32) {
      const auto pair = load_bytes(Bytes32(), low + i);
      const auto four = run < 2 ? low_nibbles(pair) : high_nibbles(pair);
      store_signed(hn::Sub(hn::Or(four, top_two(load_bytes(Bytes32(), high + i), run)), offset), out + i);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    const float factor = half_at(block + offsetof(Block, scale));
    const auto* packed = reinterpret_cast<const int8_t*>(block + offsetof(Block, scales));
    scale_8(packed, factor, scale);
    scale_8(packed + 8, factor, scale + 8);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
