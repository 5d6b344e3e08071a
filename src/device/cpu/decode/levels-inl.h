// Formats whose 4 bits are the number of a level: IQ4_NL, IQ4_XS, MXFP4, NVFP4.

#if defined(RETRO_DEVICE_CPU_DECODE_LEVELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_LEVELS_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_LEVELS_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_LEVELS_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"
#include "tensor/codebooks.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// The level of each nibble of 16 bytes: those of the low nibbles go to `low`, of the high ones to `high`.
HWY_INLINE void look_up_levels(const int8_t (&levels)[16], const std::byte* packed, int8_t* low,
                               int8_t* high) {
  const auto table = hn::LoadU(Bytes16(), reinterpret_cast<const uint8_t*>(levels));
  const auto bytes = load_bytes(Bytes16(), packed);
  store_signed(hn::TableLookupBytes(table, low_nibbles(bytes)), low);
  store_signed(hn::TableLookupBytes(table, high_nibbles(bytes)), high);
}

/// scale·level.
struct IQ4_NL {
  using Block = tensor::BlockIQ4_NL;
  static constexpr int kBlock = 32;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int, int8_t* out) {
    look_up_levels(tensor::kIq4Values, block + offsetof(Block, quants), out, out + 16);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) { *scale = half_at(block); }
};

/// (scale·s)·level, s for each 32.
struct IQ4_XS {
  using Block = tensor::BlockIQ4_XS;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    look_up_levels(tensor::kIq4Values, block + offsetof(Block, quants) + 16 * chunk, out, out + 16);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    uint16_t high;
    uint8_t low[4];
    int8_t unpacked[8];
    std::memcpy(&high, block + offsetof(Block, scales_high), sizeof(high));
    std::memcpy(low, block + offsetof(Block, scales_low), sizeof(low));
    tensor::unpack_scales_iq4_xs(high, low, unpacked);
    scale_8(unpacked, half_at(block), scale);
  }
};

/// 2^e·level.
struct MXFP4 {
  using Block = tensor::BlockMXFP4;
  static constexpr int kBlock = 32;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int, int8_t* out) {
    look_up_levels(tensor::kE2m1Values, block + offsetof(Block, quants), out, out + 16);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    *scale = tensor::unpack_e8m0_half(static_cast<uint8_t>(*block));
  }
};

/// scale·level, a scale for each 16, whose nibbles are in 8 bytes.
struct NVFP4 {
  using Block = tensor::BlockNVFP4;
  static constexpr int kBlock = 64;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const hn::Repartition<uint64_t, Bytes16> halves;
    const auto table = hn::LoadU(Bytes16(), reinterpret_cast<const uint8_t*>(tensor::kE2m1Values));
    const auto bytes = load_bytes(Bytes16(), block + offsetof(Block, quants) + 16 * chunk);
    const auto low = hn::BitCast(halves, hn::TableLookupBytes(table, low_nibbles(bytes)));
    const auto high = hn::BitCast(halves, hn::TableLookupBytes(table, high_nibbles(bytes)));
    store_signed(hn::BitCast(Bytes16(), hn::InterleaveLower(halves, low, high)), out);
    store_signed(hn::BitCast(Bytes16(), hn::InterleaveUpper(halves, low, high)), out + 16);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    for (int g = 0; g < 4; ++g) scale[g] = tensor::unpack_ue4m3_half(static_cast<uint8_t>(block[g]));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
