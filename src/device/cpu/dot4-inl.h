// Sums of four products of bytes in each lane of 32 bits, exact.
//
// Four weights of one output lie in a lane. VNNI multiplies unsigned by signed bytes: there a signed weight q
// is kept as q + 128, and sums begin at -128·Σ a. The other sets keep q itself.

#if defined(RETRO_DEVICE_CPU_DOT4_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DOT4_INL_H_
#undef RETRO_DEVICE_CPU_DOT4_INL_H_
#else
#define RETRO_DEVICE_CPU_DOT4_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DotLanes = hn::CappedTag<int32_t, 16>;
using DotBytes = hn::Repartition<int8_t, DotLanes>;
using DotSum = hn::Vec<DotLanes>;
constexpr int kDotLanes = static_cast<int>(hn::MaxLanes(DotLanes()));
constexpr bool kBiased = HWY_TARGET <= HWY_AVX3_DL;

/// Weights as they are multiplied, 4·kDotLanes of them.
struct DotWeights;
/// From bytes of the panel.
DotWeights dot_weights(const int8_t* at);
/// sum + the products with four bytes of x, which every lane of `x` holds. Products of two neighbours stay
/// below 2^15: |q| <= 128, |a| <= 127.
DotSum dot4(DotSum sum, const DotWeights& w, DotSum x);

#if HWY_TARGET <= HWY_AVX3_DL

struct DotWeights {
  DotSum bytes;
};

HWY_INLINE DotWeights dot_weights(const int8_t* at) {
  return {hn::BitCast(DotLanes(), hn::LoadU(DotBytes(), at))};
}

HWY_INLINE DotSum dot4(DotSum sum, const DotWeights& w, DotSum x) {
  // Highway 1.0.3 compiles this target with AVX-VNNI, which these processors may lack, in place of
  // AVX512-VNNI, so that the compiler would refuse the intrinsic.
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.bytes.raw), "v"(x.raw));
  return sum;
}

#elif HWY_TARGET <= HWY_AVX3

struct DotWeights {
  __m512i magnitude;
  __mmask64 negative;
};

HWY_INLINE DotWeights dot_weights(const int8_t* at) {
  const __m512i bytes = hn::LoadU(DotBytes(), at).raw;
  return {_mm512_abs_epi8(bytes), _mm512_movepi8_mask(bytes)};
}

HWY_INLINE DotSum dot4(DotSum sum, const DotWeights& w, DotSum x) {
  const __m512i turned = _mm512_mask_sub_epi8(x.raw, w.negative, _mm512_setzero_si512(), x.raw);
  const __m512i pairs = _mm512_maddubs_epi16(w.magnitude, turned);
  return hn::Add(sum, DotSum{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
}

#elif HWY_TARGET <= HWY_AVX2

struct DotWeights {
  __m256i bytes;
  __m256i magnitude;
};

HWY_INLINE DotWeights dot_weights(const int8_t* at) {
  const __m256i bytes = hn::LoadU(DotBytes(), at).raw;
  return {bytes, _mm256_abs_epi8(bytes)};
}

HWY_INLINE DotSum dot4(DotSum sum, const DotWeights& w, DotSum x) {
  const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(x.raw, w.bytes));
  return hn::Add(sum, DotSum{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
}

#else

struct DotWeights {
  hn::Vec<DotBytes> bytes;
};

HWY_INLINE DotWeights dot_weights(const int8_t* at) {
  return {hn::LoadU(DotBytes(), at)};
}

/// The sums of the two halves of each lane.
template <class V>
HWY_INLINE DotSum sum_pairs(V products) {
  const auto both = hn::BitCast(DotLanes(), products);
  return hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(both)), hn::ShiftRight<16>(both));
}

HWY_INLINE DotSum dot4(DotSum sum, const DotWeights& w, DotSum x) {
  const hn::Repartition<int16_t, DotLanes> wide;
  const hn::Half<DotBytes> half;
  const auto a = hn::BitCast(DotBytes(), x);
  const auto low =
      hn::Mul(hn::PromoteTo(wide, hn::LowerHalf(half, w.bytes)), hn::PromoteTo(wide, hn::LowerHalf(half, a)));
  const auto high =
      hn::Mul(hn::PromoteTo(wide, hn::UpperHalf(half, w.bytes)), hn::PromoteTo(wide, hn::UpperHalf(half, a)));
  const DotSum first = sum_pairs(low);
  const DotSum second = sum_pairs(high);
  return hn::Add(
      sum, hn::Add(hn::ConcatEven(DotLanes(), second, first), hn::ConcatOdd(DotLanes(), second, first)));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
