// Sums over a row in 16 virtual lanes: element i goes to lane i mod 16 in the order of i, and the lanes are
// added in a fixed tree, so that a sum has the same bits on every vector width.

#if defined(RETRO_DEVICE_CPU_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_REDUCE_INL_H_
#undef RETRO_DEVICE_CPU_REDUCE_INL_H_
#else
#define RETRO_DEVICE_CPU_REDUCE_INL_H_
#endif

#include "device/cpu/vector_io-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

constexpr size_t kVirtualLanes = 16;
constexpr size_t kParts = kVirtualLanes / kVectorLanes;

/// 16 consecutive elements, or the first `count` of them with zeros behind.
struct Lanes16 {
  V32 part[kParts];
};

HWY_INLINE Lanes16 load_lanes(const float* p, size_t count) {
  Lanes16 lanes;
  for (size_t i = 0; i < kParts; ++i) {
    const size_t done = i * kVectorLanes;
    lanes.part[i] = count > done ? load_n(p + done, count - done) : hn::Zero(F32());
  }
  return lanes;
}

HWY_INLINE Lanes16 zero_lanes() {
  Lanes16 lanes;
  for (size_t i = 0; i < kParts; ++i) lanes.part[i] = hn::Zero(F32());
  return lanes;
}

HWY_INLINE float sum_of_lanes(const Lanes16& lanes) {
  HWY_ALIGN float values[kVirtualLanes];
  for (size_t i = 0; i < kParts; ++i) hn::Store(lanes.part[i], F32(), values + i * kVectorLanes);
  for (size_t half = kVirtualLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) values[i] += values[i + half];
  }
  return values[0];
}

/// Σ a[i]·b[i].
HWY_INLINE float dot(const float* a, const float* b, size_t n) {
  Lanes16 sum = zero_lanes();
  for (size_t i = 0; i < n; i += kVirtualLanes) {
    const Lanes16 x = load_lanes(a + i, n - i);
    const Lanes16 y = load_lanes(b + i, n - i);
    for (size_t j = 0; j < kParts; ++j) sum.part[j] = hn::MulAdd(x.part[j], y.part[j], sum.part[j]);
  }
  return sum_of_lanes(sum);
}

/// Σ (a[i]·b[i])·c[i].
HWY_INLINE float dot3(const float* a, const float* b, const float* c, size_t n) {
  Lanes16 sum = zero_lanes();
  for (size_t i = 0; i < n; i += kVirtualLanes) {
    const Lanes16 x = load_lanes(a + i, n - i);
    const Lanes16 y = load_lanes(b + i, n - i);
    const Lanes16 z = load_lanes(c + i, n - i);
    for (size_t j = 0; j < kParts; ++j) {
      sum.part[j] = hn::MulAdd(hn::Mul(x.part[j], y.part[j]), z.part[j], sum.part[j]);
    }
  }
  return sum_of_lanes(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
