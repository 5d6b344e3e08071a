// Whole and partial vectors of f32, and f16 on the way in and out.

#if defined(RETRO_DEVICE_CPU_VECTOR_IO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_VECTOR_IO_INL_H_
#undef RETRO_DEVICE_CPU_VECTOR_IO_INL_H_
#else
#define RETRO_DEVICE_CPU_VECTOR_IO_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// At most 16 lanes, so that 16 virtual lanes are a whole number of vectors on every target.
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using V32 = hn::Vec<F32>;
constexpr size_t kVectorLanes = hn::MaxLanes(F32());

/// p[0 .. count), zeros beyond; nothing beyond is read.
HWY_INLINE V32 load_n(const float* p, size_t count) {
  const F32 d;
  if (HWY_LIKELY(count >= kVectorLanes)) return hn::LoadU(d, p);
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kVectorLanes] = {};
  std::memcpy(lanes, p, count * sizeof(float));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#endif
}

HWY_INLINE void store_n(V32 v, float* p, size_t count) {
  const F32 d;
  if (HWY_LIKELY(count >= kVectorLanes)) {
    hn::StoreU(v, d, p);
    return;
  }
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kVectorLanes];
  hn::Store(v, d, lanes);
  std::memcpy(p, lanes, count * sizeof(float));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#endif
}

/// IEEE halves as their bits, exact.
HWY_INLINE V32 load_f16_n(const uint16_t* p, size_t count) {
  const F32 d;
  const hn::Rebind<hwy::float16_t, F32> half;
  const hn::Rebind<uint16_t, F32> bits;
  if (HWY_LIKELY(count >= kVectorLanes)) {
    return hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(bits, p)));
  }
  HWY_ALIGN uint16_t lanes[kVectorLanes] = {};
  std::memcpy(lanes, p, count * sizeof(uint16_t));
  return hn::PromoteTo(d, hn::BitCast(half, hn::Load(bits, lanes)));
}

/// Rounds to nearest, ties to even.
HWY_INLINE void store_f16_n(V32 v, uint16_t* p, size_t count) {
  const hn::Rebind<hwy::float16_t, F32> half;
  const hn::Rebind<uint16_t, F32> bits;
  const auto rounded = hn::BitCast(bits, hn::DemoteTo(half, v));
  if (HWY_LIKELY(count >= kVectorLanes)) {
    hn::StoreU(rounded, bits, p);
    return;
  }
  HWY_ALIGN uint16_t lanes[kVectorLanes];
  hn::Store(rounded, bits, lanes);
  std::memcpy(p, lanes, count * sizeof(uint16_t));
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
