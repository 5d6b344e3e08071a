// Root-mean-square normalization (Zhang and Sennrich 2019), a row or a group of a row at a time.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/rms_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include "device/cpu/kernels.h"
#include "device/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

// s = 1 / sqrt(mean(x²) + eps) of n elements.
HWY_INLINE float inverse_rms(const float* x, size_t n, float eps) {
  const F32 d;
  const float mean = dot(x, x, n) / static_cast<float>(n);
  return hn::GetLane(hn::Div(hn::Set(d, 1.0F), hn::Sqrt(hn::Set(d, mean + eps))));
}

// y = (x·s)·weight.
void rms_norm_rows(const RmsNormArgs& args, int64_t begin, int64_t end) {
  const F32 d;
  const auto width = static_cast<size_t>(args.x.cols / args.groups);
  for (int64_t r = begin; r < end; ++r) {
    for (size_t g = 0; g < static_cast<size_t>(args.groups); ++g) {
      const float* x = args.x.f32() + r * args.x.stride + g * width;
      float* y = args.y.f32() + r * args.y.stride + g * width;
      const V32 scale = hn::Set(d, inverse_rms(x, width, args.eps));
      for (size_t i = 0; i < width; i += kVectorLanes) {
        const V32 normal = hn::Mul(load_n(x + i, width - i), scale);
        store_n(hn::Mul(normal, load_n(args.weight + i, width - i)), y + i, width - i);
      }
    }
  }
}

// dx (+)= s·(g - n·mean(g·n)), g = dy·weight, n = x·s; mean(g·n) = s·Σ(g·x) / width.
void rms_norm_back_rows(const RmsNormBackArgs& args, int64_t begin, int64_t end) {
  const F32 d;
  const auto width = static_cast<size_t>(args.x.cols / args.groups);
  for (int64_t r = begin; r < end; ++r) {
    for (size_t g = 0; g < static_cast<size_t>(args.groups); ++g) {
      const float* x = args.x.f32() + r * args.x.stride + g * width;
      const float* dy = args.dy.f32() + r * args.dy.stride + g * width;
      float* dx = args.dx.f32() + r * args.dx.stride + g * width;
      const float inverse = inverse_rms(x, width, args.eps);
      const float mean = inverse * dot3(dy, args.weight, x, width) / static_cast<float>(width);
      const V32 scale = hn::Set(d, inverse);
      const V32 slope = hn::Set(d, mean);
      for (size_t i = 0; i < width; i += kVectorLanes) {
        const size_t n = width - i;
        const V32 upstream = hn::Mul(load_n(dy + i, n), load_n(args.weight + i, n));
        const V32 normal = hn::Mul(load_n(x + i, n), scale);
        V32 value = hn::Mul(hn::NegMulAdd(normal, slope, upstream), scale);
        if (args.accumulate) value = hn::Add(load_n(dx + i, n), value);
        store_n(value, dx + i, n);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(rms_norm_back_rows);

void rms_norm(const RmsNormArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(args, begin, end);
  });
}

void rms_norm_back(const RmsNormBackArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(rms_norm_back_rows)(args, begin, end);
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
