// TQ1_0: scale·(q - 1), five ternary digits a byte.

#if defined(RETRO_DEVICE_CPU_DECODE_TQ1_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_TQ1_0_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_TQ1_0_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_TQ1_0_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct TQ1_0 {
  using Block = tensor::BlockTQ1_0;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 256;
  static constexpr bool kMinimum = false;

  /// Digit t less one: 3ᵗ·b, of which the fraction beyond 256 counts, is in one of the thirds of 0 … 255.
  template <class V>
  static HWY_INLINE V digit(V bytes, int t) {
    const hn::DFromV<V> d;
    for (int i = 0; i < t; ++i) bytes = hn::Add(hn::Add(bytes, bytes), bytes);
    const auto one = hn::Set(d, uint8_t{1});
    const auto beyond_one = hn::Min(hn::SaturatedSub(bytes, hn::Set(d, uint8_t{85})), one);
    const auto beyond_two = hn::Min(hn::SaturatedSub(bytes, hn::Set(d, uint8_t{170})), one);
    return hn::Sub(hn::Add(beyond_one, beyond_two), one);
  }

  /// The four last bytes times 1, 3, 9 and 27.
  static HWY_INLINE auto last_bytes(const std::byte* block) {
    constexpr uint32_t kEven = 0x00ff00ffU;
    uint32_t words[4];
    std::memcpy(words, block + offsetof(Block, last_quants), 4);
    for (int t = 1; t < 4; ++t) {
      const uint32_t even = (words[t - 1] & kEven) * 3;
      const uint32_t odd = ((words[t - 1] >> 8) & kEven) * 3;
      words[t] = (even & kEven) | ((odd & kEven) << 8);
    }
    return hn::LoadU(Bytes16(), reinterpret_cast<const uint8_t*>(words));
  }

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* packed = block + offsetof(Block, quants);
    if (chunk < 5) {
      for (int i = 0; i < 32; i += kBytes32) {
        store_signed(digit(load_bytes(Bytes32(), packed + i), chunk), out + i);
      }
      return;
    }
    const auto rest = load_bytes(Bytes16(), packed + 32);
    const int first = 2 * (chunk - 5);
    store_signed(digit(rest, first), out);
    if (chunk < 7) {
      store_signed(digit(rest, first + 1), out + 16);
    } else {
      store_signed(digit(last_bytes(block), 0), out + 16);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    *scale = half_at(block + offsetof(Block, scale));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
