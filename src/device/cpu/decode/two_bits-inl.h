// Formats with 2 bits a weight in 64 bytes: Q2_K, Q3_K (with a third bit) and TQ2_0.

#if defined(RETRO_DEVICE_CPU_DECODE_TWO_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_TWO_BITS_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_TWO_BITS_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_TWO_BITS_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// Bits 2·run and 2·run + 1 of each byte.
template <class V>
HWY_INLINE V two_bits(V packed, int run) {
  const hn::Repartition<uint16_t, hn::DFromV<V>> wide;
  const auto shifted = hn::BitCast(hn::DFromV<V>(), hn::ShiftRightSame(hn::BitCast(wide, packed), 2 * run));
  return hn::And(shifted, hn::Set(hn::DFromV<V>(), uint8_t{3}));
}

/// (scale·s)·q - (min_scale·m), s and m for each 16.
struct Q2_K {
  using Block = tensor::BlockQ2_K;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = true;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* packed = block + offsetof(Block, quants) + 32 * (chunk / 4);
    for (int i = 0; i < 32; i += kBytes32) {
      store_signed(two_bits(load_bytes(Bytes32(), packed + i), chunk % 4), out + i);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float* minimum) {
    const auto packed = load_bytes(Bytes16(), block + offsetof(Block, scales));
    const float factor = half_at(block + offsetof(Block, scale));
    const float min_factor = half_at(block + offsetof(Block, min_scale));
    scale_16(low_nibbles(packed), factor, scale);
    scale_16(high_nibbles(packed), -min_factor, minimum);
  }
};

/// (scale·s)·q with s for each 16 and q from -4 to 3.
struct Q3_K {
  using Block = tensor::BlockQ3_K;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* packed = block + offsetof(Block, quants) + 32 * (chunk / 4);
    const auto bit = hn::Set(Bytes32(), static_cast<uint8_t>(1 << chunk));
    const auto four = hn::Set(Bytes32(), uint8_t{4});
    for (int i = 0; i < 32; i += kBytes32) {
      const auto low = two_bits(load_bytes(Bytes32(), packed + i), chunk % 4);
      const auto set = hn::TestBit(load_bytes(Bytes32(), block + offsetof(Block, high_bits) + i), bit);
      store_signed(hn::Sub(low, hn::IfThenZeroElse(set, four)), out + i);
    }
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    uint8_t packed[12];
    int8_t unpacked[16];
    std::memcpy(packed, block + offsetof(Block, scales), sizeof(packed));
    tensor::unpack_scales_q3_k(packed, unpacked);
    const float factor = half_at(block + offsetof(Block, scale));
    scale_8(unpacked, factor, scale);
    scale_8(unpacked + 8, factor, scale + 8);
  }
};

/// scale·(q - 1).
struct TQ2_0 {
  using Block = tensor::BlockTQ2_0;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 256;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* packed = block + offsetof(Block, quants) + 32 * (chunk / 4);
    const auto one = hn::Set(Bytes32(), uint8_t{1});
    for (int i = 0; i < 32; i += kBytes32) {
      store_signed(hn::Sub(two_bits(load_bytes(Bytes32(), packed + i), chunk % 4), one), out + i);
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
