// Rotary position embedding (Su et al. 2021): (a, b) -> (a·cos - b·sin, b·cos + a·sin) for each pair of a
// head.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/rope.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <cstring>

#include "device/cpu/kernels.h"
#include "device/cpu/vector_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct Rotated {
  V32 a;
  V32 b;
};

HWY_INLINE Rotated rotate(V32 a, V32 b, V32 cosine, V32 sine) {
  return {hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), hn::MulAdd(a, sine, hn::Mul(b, cosine))};
}

HWY_INLINE V32 load_sine(const float* p, size_t n, bool inverse) {
  const V32 sine = load_n(p, n);
  return inverse ? hn::Neg(sine) : sine;
}

// Pairs (i, i + half).
HWY_INLINE void rotate_halves(const float* x, float* y, const float* cos_sin, size_t half, bool inverse) {
  for (size_t i = 0; i < half; i += kVectorLanes) {
    const size_t n = half - i;
    const V32 sine = load_sine(cos_sin + half + i, n, inverse);
    const Rotated pair = rotate(load_n(x + i, n), load_n(x + half + i, n), load_n(cos_sin + i, n), sine);
    store_n(pair.a, y + i, n);
    store_n(pair.b, y + half + i, n);
  }
}

// Pairs (2i, 2i + 1).
HWY_INLINE void rotate_neighbours(const float* x, float* y, const float* cos_sin, size_t half, bool inverse) {
  const F32 d;
  HWY_ALIGN float buffer[2 * kVectorLanes] = {};
  for (size_t i = 0; i < half; i += kVectorLanes) {
    const size_t n = half - i < kVectorLanes ? half - i : kVectorLanes;
    std::memcpy(buffer, x + 2 * i, 2 * n * sizeof(float));
    V32 a;
    V32 b;
    hn::LoadInterleaved2(d, buffer, a, b);
    const Rotated pair = rotate(a, b, load_n(cos_sin + i, n), load_sine(cos_sin + half + i, n, inverse));
    hn::StoreInterleaved2(pair.a, pair.b, d, buffer);
    std::memcpy(y + 2 * i, buffer, 2 * n * sizeof(float));
  }
}

void rope_rows(const RopeArgs& args, const int32_t* positions, int64_t begin, int64_t end) {
  const auto half = static_cast<size_t>(args.dims / 2);
  for (int64_t r = begin; r < end; ++r) {
    const float* cos_sin = args.cos_sin + static_cast<int64_t>(positions[r]) * args.dims;
    for (int64_t h = 0; h < args.heads; ++h) {
      const float* x = args.x.f32() + r * args.x.stride + h * args.head_dim;
      float* y = args.y.f32() + r * args.y.stride + h * args.head_dim;
      if (args.style == RopeStyle::half) {
        rotate_halves(x, y, cos_sin, half, args.inverse);
      } else {
        rotate_neighbours(x, y, cos_sin, half, args.inverse);
      }
      if (x != y) std::memcpy(y + 2 * half, x + 2 * half, (args.head_dim - 2 * half) * sizeof(float));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(rope_rows);

void rope(const RopeArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(rope_rows)(args, pass.positions.data(), begin, end);
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
