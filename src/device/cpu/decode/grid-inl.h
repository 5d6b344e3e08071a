// Formats whose weights are points of a grid with signs: IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S.
//
// Their scales are a half times (2s + 1) and a power of two: exact, so that the power may go first.

#if defined(RETRO_DEVICE_CPU_DECODE_GRID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_GRID_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_GRID_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_GRID_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"
#include "tensor/codebooks.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// The 32 coordinates of points looked up in a grid.
template <typename Word>
struct Points {
  static constexpr int kCount = 32 / static_cast<int>(sizeof(Word));
  alignas(32) Word at[kCount];

  HWY_INLINE auto load(int i) const { return hn::Load(Bytes32(), reinterpret_cast<const uint8_t*>(at) + i); }
};

/// The coordinates, negative where the bit of `signs` is set.
template <typename Word>
HWY_INLINE void store_points(const Points<Word>& points, uint32_t signs, int8_t* out) {
  const uint64_t bits[2] = {signs, 0};
  for (int i = 0; i < 32; i += kBytes32) {
    const auto v = points.load(i);
    const auto negative = hn::LoadMaskBits(Bytes32(), reinterpret_cast<const uint8_t*>(bits) + i / 8);
    store_signed(hn::IfThenElse(negative, hn::Sub(hn::Zero(Bytes32()), v), v), out + i);
  }
}

template <typename T>
HWY_INLINE T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

HWY_INLINE unsigned byte_at(const std::byte* at) {
  return static_cast<unsigned>(*at);
}

/// scale[i] = factor·(2s + 1) for the nibbles s of 8 bytes, the low one of each first.
HWY_INLINE void scale_odd_nibbles(const std::byte* packed, float factor, float* scale) {
  const hn::FixedTag<uint8_t, 8> d;
  const auto bytes = hn::LoadU(d, reinterpret_cast<const uint8_t*>(packed));
  const auto low = hn::ZeroExtendVector(Bytes16(), low_nibbles(bytes));
  const auto high = hn::ZeroExtendVector(Bytes16(), high_nibbles(bytes));
  const auto s = hn::InterleaveLower(Bytes16(), low, high);
  scale_16(hn::Add(hn::Add(s, s), hn::Set(Bytes16(), uint8_t{1})), factor, scale);
}

/// scale[c] = factor·(2s + 1) with s in the top four bits of a word of each of 8 chunks, `stride` bytes
/// apart.
HWY_INLINE void scale_odd_words(const std::byte* words, int stride, float factor, float* scale) {
  uint8_t odd[8];
  for (int c = 0; c < 8; ++c) {
    odd[c] = static_cast<uint8_t>((load_as<uint32_t>(words + stride * c) >> 28) * 2 + 1);
  }
  scale_8(odd, factor, scale);
}

struct IQ2_XXS {
  using Block = tensor::BlockIQ2_XXS;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const auto words = load_as<uint64_t>(block + offsetof(Block, quants) + 8 * chunk);
    Points<uint64_t> points;
    for (int e = 0; e < 4; ++e) points.at[e] = tensor::kIq2XxsGrid[(words >> (8 * e)) & 255U];
    store_points(points, tensor::spread_signs(static_cast<uint32_t>(words >> 32)), out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    scale_odd_words(block + offsetof(Block, quants) + 4, 8, 0.125F * half_at(block), scale);
  }
};

struct IQ2_XS {
  using Block = tensor::BlockIQ2_XS;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const auto words = load_as<uint64_t>(block + offsetof(Block, quants) + 8 * chunk);
    Points<uint64_t> points;
    uint32_t fields = 0;
    for (int e = 0; e < 4; ++e) {
      const auto word = static_cast<uint32_t>(words >> (16 * e)) & 0xffffU;
      points.at[e] = tensor::kIq2XsGrid[word & 511U];
      fields |= (word >> 9) << (7 * e);
    }
    store_points(points, tensor::spread_signs(fields), out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    scale_odd_nibbles(block + offsetof(Block, scales), 0.125F * half_at(block), scale);
  }
};

struct IQ2_S {
  using Block = tensor::BlockIQ2_S;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 16;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* low = block + offsetof(Block, quants) + 4 * chunk;
    const unsigned high = byte_at(block + offsetof(Block, high_bits) + chunk);
    Points<uint64_t> points;
    for (int e = 0; e < 4; ++e) {
      points.at[e] = tensor::kIq2SGrid[byte_at(low + e) | (((high >> (2 * e)) & 3U) << 8)];
    }
    store_points(points, load_as<uint32_t>(block + offsetof(Block, signs) + 4 * chunk), out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    scale_odd_nibbles(block + offsetof(Block, scales), 0.125F * half_at(block), scale);
  }
};

struct IQ3_XXS {
  using Block = tensor::BlockIQ3_XXS;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* index = block + offsetof(Block, quants) + 8 * chunk;
    Points<uint32_t> points;
    for (int e = 0; e < 8; ++e) points.at[e] = tensor::kIq3XxsGrid[byte_at(index + e)];
    const auto fields = load_as<uint32_t>(block + offsetof(Block, signs_and_scales) + 4 * chunk);
    store_points(points, tensor::spread_signs(fields), out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    scale_odd_words(block + offsetof(Block, signs_and_scales), 4, 0.25F * half_at(block), scale);
  }
};

struct IQ3_S {
  using Block = tensor::BlockIQ3_S;
  static constexpr int kBlock = 256;
  static constexpr int kGroup = 32;
  static constexpr bool kMinimum = false;

  static HWY_INLINE void quants(const std::byte* block, int chunk, int8_t* out) {
    const std::byte* low = block + offsetof(Block, quants) + 8 * chunk;
    const unsigned high = byte_at(block + offsetof(Block, high_bits) + chunk);
    Points<uint32_t> points;
    for (int e = 0; e < 8; ++e) {
      points.at[e] = tensor::kIq3SGrid[byte_at(low + e) | (((high >> e) & 1U) << 8)];
    }
    store_points(points, load_as<uint32_t>(block + offsetof(Block, signs) + 4 * chunk), out);
  }

  static HWY_INLINE void scales(const std::byte* block, float* scale, float*) {
    uint64_t packed = load_as<uint32_t>(block + offsetof(Block, scales));
    uint8_t odd[8];
    for (int c = 0; c < 8; ++c, packed >>= 4) odd[c] = static_cast<uint8_t>((packed & 15U) * 2 + 1);
    scale_8(odd, half_at(block), scale);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
