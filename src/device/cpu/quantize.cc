// Rows rounded to 8 bits, a group of 32 at a time.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/quantize.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <limits>

#include "device/cpu/kernels.h"
#include "device/cpu/vector_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

// Vectors that hold 16 numbers.
constexpr size_t kHalfVectors = 16 / kVectorLanes;

// The largest magnitude as its bits: in their order a NaN is above infinity and all numbers.
HWY_INLINE int32_t largest_bits(const V32 (&x)[2 * kHalfVectors]) {
  const I32 di;
  auto top = hn::Zero(di);
  for (const V32& part : x) top = hn::Max(top, hn::BitCast(di, hn::Abs(part)));
  return hn::GetLane(hn::MaxOfLanes(di, top));
}

HWY_INLINE void quantize_group(const float* x, QuantizedGroup& group) {
  const F32 d;
  const I32 di;
  const hn::Rebind<int8_t, F32> bytes;
  V32 part[2 * kHalfVectors];
  for (size_t i = 0; i < 2 * kHalfVectors; ++i) part[i] = hn::LoadU(d, x + i * kVectorLanes);
  const float largest = hn::GetLane(hn::BitCast(d, hn::Set(di, largest_bits(part))));
  const bool finite = largest <= std::numeric_limits<float>::max();
  // Below, the inverse would overflow.
  const bool tiny = finite && largest < 1e-35F;
  group.scale = !finite ? std::numeric_limits<float>::quiet_NaN() : tiny ? 0 : largest / 127;
  const V32 inverse = hn::Set(d, !finite || tiny ? 0 : 127 / largest);
  int32_t sums[2];
  for (size_t half = 0; half < 2; ++half) {
    auto sum = hn::Zero(di);
    for (size_t i = half * kHalfVectors; i < (half + 1) * kHalfVectors; ++i) {
      const V32 scaled = finite ? hn::Mul(part[i], inverse) : hn::Zero(d);
      const auto rounded = hn::NearestInt(scaled);
      hn::StoreU(hn::DemoteTo(bytes, rounded), bytes, group.values + i * kVectorLanes);
      sum = hn::Add(sum, rounded);
    }
    sums[half] = hn::GetLane(hn::SumOfLanes(di, sum));
    group.half_offsets[half] = -128 * sums[half];
    group.half_sums[half] = group.scale * static_cast<float>(sums[half]);
  }
  group.offset = -128 * (sums[0] + sums[1]);
  group.sum = group.scale * static_cast<float>(sums[0] + sums[1]);
  group.unused = 0;
}

void quantize_rows(const QuantizeArgs& args, int64_t begin, int64_t end) {
  const int64_t groups = args.x.cols / QuantizedGroup::kSize;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = args.x.f32() + r * args.x.stride;
    auto* out = reinterpret_cast<QuantizedGroup*>(args.out.f32() + r * args.out.stride);
    for (int64_t g = 0; g < groups; ++g) quantize_group(x + g * QuantizedGroup::kSize, out[g]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(quantize_rows);

void quantize(const QuantizeArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  // A few rows are made before another thread is awake.
  constexpr int64_t kFewNumbers = 16384;
  const auto run = HWY_DYNAMIC_DISPATCH(quantize_rows);
  if (pass.rows * args.x.cols <= kFewNumbers) return run(args, 0, pass.rows);
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) { run(args, begin, end); });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
