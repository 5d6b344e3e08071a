// IQ1_S and IQ1_M: (scale·(2s + 1))·(point ± 1/8), points of a ternary grid for each 8 weights.
//
// Both factors times 8 and an eighth are exact: q = 8·point ± 1.

#if defined(RETRO_DEVICE_CPU_DECODE_IQ1_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_IQ1_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_IQ1_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_IQ1_INL_H_
#endif

#include "device/cpu/decode/grid-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// Entry `index` with 9 above 8·point ± 1; plus where `up` is 1.
HWY_INLINE uint64_t ternary_point(unsigned index, unsigned up) {
  return tensor::kIq1Grid[index] + up * 0x0202020202020202U;
}

HWY_INLINE void store_ternary(const Points<uint64_t>& points, int8_t* out) {
  for (int i = 0; i < 32; i += kBytes32) {
    store_signed(hn::Sub(points.load(i), hn::Set(Bytes32(), uint8_t{9})), out + i);
  }
}

struct IQ1_S {
  using Block = tensor::BlockIQ1_S;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* low = block + offsetof(Block, quants) + 4 * chunk;
    const unsigned high = load_as<uint16_t>(block + offsetof(Block, high_bits) + 2 * chunk);
    const unsigned up = (high >> 15) ^ 1U;
    Points<uint64_t> points;
    for (int e = 0; e < 4; ++e) {
      points.at[e] = ternary_point(byte_at(low + e) | (((high >> (3 * e)) & 7U) << 8), up);
    }
    store_ternary(points, out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    uint8_t odd[8];
    for (int c = 0; c < 8; ++c) {
      const unsigned high = load_as<uint16_t>(block + offsetof(Block, high_bits) + 2 * c);
      odd[c] = static_cast<uint8_t>(((high >> 12) & 7U) * 2 + 1);
    }
    scale_8(odd, 0.125F * half_at(block), scale);
  }
};

struct IQ1_M {
  using Block = tensor::BlockIQ1_M;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* low = block + offsetof(Block, quants) + 4 * chunk;
    const unsigned high = load_as<uint16_t>(block + offsetof(Block, high_bits) + 2 * chunk);
    Points<uint64_t> points;
    for (int e = 0; e < 4; ++e) {
      const unsigned bits = high >> (4 * e);
      points.at[e] = ternary_point(byte_at(low + e) | ((bits & 7U) << 8), ((bits >> 3) & 1U) ^ 1U);
    }
    store_ternary(points, out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    uint16_t words[4];
    std::memcpy(words, block + offsetof(Block, scales), sizeof(words));
    uint8_t odd[16];
    for (int g = 0; g < 16; ++g) {
      odd[g] = static_cast<uint8_t>(((words[g / 4] >> (3 * (g % 4))) & 7) * 2 + 1);
    }
    const float factor = 0.125F * tensor::f16_to_f32(tensor::unpack_scale_iq1_m(words));
    scale_8(odd, factor, scale);
    scale_8(odd + 8, factor, scale + 8);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
