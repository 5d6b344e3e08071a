// What the block decoders share.
//
// A decoder of a block format gives, for a block at an address of any alignment,
//   quants(block, chunk, out): the 32 signed numbers q of weights 32·chunk …, and
//   scales(block, scale, minimum): scale[g] and minimum[g] for each group g of kGroup weights,
// so that weight = scale·q + minimum (no minimum where kMinimum is false), product and sum rounded each on
// its own, which are the bits of tensor::dequantize_row.

#if defined(RETRO_DEVICE_CPU_DECODE_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_BITS_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_BITS_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_BITS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "tensor/quant_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Bytes16 = hn::FixedTag<uint8_t, 16>;
/// For formats whose 32 quants are in 32 bytes: one vector or two.
using Bytes32 = hn::CappedTag<uint8_t, 32>;
constexpr int kBytes32 = static_cast<int>(hn::MaxLanes(Bytes32()));

/// An IEEE half anywhere in memory, exact.
HWY_INLINE float half_at(const std::byte* at) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<uint16_t, 4> bits;
  const hn::FixedTag<hwy::float16_t, 4> half;
  uint16_t value;
  std::memcpy(&value, at, sizeof(value));
  return hn::GetLane(hn::PromoteTo(d, hn::BitCast(half, hn::Set(bits, value))));
}

template <class D>
HWY_INLINE hn::Vec<D> load_bytes(D d, const std::byte* at) {
  return hn::LoadU(d, reinterpret_cast<const uint8_t*>(at));
}

template <class V>
HWY_INLINE void store_signed(V v, int8_t* out) {
  hn::StoreU(v, hn::DFromV<V>(), reinterpret_cast<uint8_t*>(out));
}

template <class V>
HWY_INLINE V low_nibbles(V packed) {
  return hn::And(packed, hn::Set(hn::DFromV<V>(), uint8_t{15}));
}

template <class V>
HWY_INLINE V high_nibbles(V packed) {
  const hn::DFromV<V> d;
  const hn::Repartition<uint16_t, hn::DFromV<V>> wide;
  return low_nibbles(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(wide, packed))));
}

/// `weight` where bit i of the 16 bits at `at` is set, else 0. Reads 8 bytes.
HWY_INLINE auto spread_bits(const std::byte* at, uint8_t weight) {
  const auto mask = hn::LoadMaskBits(Bytes16(), reinterpret_cast<const uint8_t*>(at));
  return hn::IfThenElseZero(mask, hn::Set(Bytes16(), weight));
}

/// out[i] = factor · bytes[i], 8 of them.
template <typename Byte>
HWY_INLINE void scale_8(const Byte* bytes, float factor, float* out) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::Rebind<Byte, decltype(d)> narrow;
  for (size_t i = 0; i < 8; i += hn::Lanes(d)) {
    const auto number = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(narrow, bytes + i)));
    hn::StoreU(hn::Mul(hn::Set(d, factor), number), d, out + i);
  }
}

/// out[i] = factor · bytes[i], 16 of them.
HWY_INLINE void scale_16(hn::Vec<Bytes16> bytes, float factor, float* out) {
  alignas(16) uint8_t lanes[16];
  hn::Store(bytes, Bytes16(), lanes);
  scale_8(lanes, factor, out);
  scale_8(lanes + 8, factor, out + 8);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
