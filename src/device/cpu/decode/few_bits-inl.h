// Q1_0: ±scale, a bit a weight; Q2_0: scale·(q - 1), 2 bits a weight side by side in a byte.

#if defined(RETRO_DEVICE_CPU_DECODE_FEW_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_FEW_BITS_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_FEW_BITS_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_FEW_BITS_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Q1_0 {
  using Block = tensor::BlockQ1_0;
  static constexpr int kBlock = 128;
  static constexpr int kGroup = 128;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    uint64_t bits[2] = {};
    std::memcpy(bits, block + offsetof(Block, bits) + 4 * chunk, 4);
    const auto one = hn::Set(Bytes32(), uint8_t{1});
    for (int i = 0; i < 32; i += kBytes32) {
      const auto set = hn::LoadMaskBits(Bytes32(), reinterpret_cast<const uint8_t*>(bits) + i / 8);
      store_signed(hn::IfThenElse(set, one, hn::Set(Bytes32(), uint8_t{255})), out + i);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) { *scale = half_at(block); }
};

struct Q2_0 {
  using Block = tensor::BlockQ2_0;
  static constexpr int kBlock = 64;
  static constexpr int kGroup = 64;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    // Each byte four times, then the bits of its own weight.
    alignas(16) static constexpr uint8_t kFourTimes[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    alignas(16) static constexpr uint8_t kLow[16] = {1, 4, 16, 64, 1, 4, 16, 64, 1, 4, 16, 64, 1, 4, 16, 64};
    const auto low_bit = hn::Load(Bytes16(), kLow);
    const auto high_bit = hn::Add(low_bit, low_bit);
    const auto one = hn::Set(Bytes16(), uint8_t{1});
    const auto bytes = load_bytes(Bytes16(), block + offsetof(Block, quants));
    for (int i = 0; i < 2; ++i) {
      const auto first = hn::Set(Bytes16(), static_cast<uint8_t>(8 * chunk + 4 * i));
      const auto packed = hn::TableLookupBytes(bytes, hn::Add(hn::Load(Bytes16(), kFourTimes), first));
      const auto low = hn::IfThenElseZero(hn::TestBit(packed, low_bit), one);
      const auto high = hn::IfThenElseZero(hn::TestBit(packed, high_bit), hn::Add(one, one));
      store_signed(hn::Sub(hn::Or(low, high), one), out + 16 * i);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) { *scale = half_at(block); }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
