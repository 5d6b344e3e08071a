// Gated activations: out = activation(gate)·up (Shazeer 2020).
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/gated.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include "device/cpu/kernels.h"
#include "device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct ValueSlope {
  V32 value;
  V32 slope;
};

// x·σ(x); slope σ + x·σ·(1 - σ).
HWY_INLINE ValueSlope silu(V32 x) {
  const SigmoidPair s = sigmoid(x);
  const V32 value = hn::Mul(x, s.sigmoid);
  return {value, hn::MulAdd(value, s.complement, s.sigmoid)};
}

// gelu by tanh: ½x·(1 + tanh u) = x·σ(2u), u = √(2/π)·(x + 0.044715·x³), which keeps the digits of the far
// negative side; slope σ + x·σ·(1 - σ)·2u'.
HWY_INLINE ValueSlope gelu_tanh(V32 x) {
  const F32 d;
  constexpr float kLinear = 1.5957691216057308F;  // 2·√(2/π)
  constexpr float kCubic = 0.07135481282831652F;  // 0.044715 times that
  // Beyond ±20 the sigmoid is 0 or 1 already; the clamp keeps the cube finite.
  const V32 z = hn::Max(hn::Set(d, -20.0F), hn::Min(hn::Set(d, 20.0F), x));
  const V32 square = hn::Mul(z, z);
  const V32 doubled = hn::Mul(z, hn::MulAdd(square, hn::Set(d, kCubic), hn::Set(d, kLinear)));
  const V32 rate = hn::MulAdd(square, hn::Set(d, 3 * kCubic), hn::Set(d, kLinear));
  const SigmoidPair s = sigmoid(doubled);
  const V32 bend = hn::Mul(hn::Mul(z, s.sigmoid), hn::Mul(s.complement, rate));
  return {hn::Mul(x, s.sigmoid), hn::Add(s.sigmoid, bend)};
}

template <Activation kActivation>
HWY_INLINE ValueSlope activate(V32 x) {
  if constexpr (kActivation == Activation::silu) return silu(x);
  return gelu_tanh(x);
}

template <Activation kActivation>
HWY_INLINE void gated_row(const float* gate, const float* up, float* out, size_t cols) {
  for (size_t i = 0; i < cols; i += kVectorLanes) {
    const size_t n = cols - i;
    const ValueSlope a = activate<kActivation>(load_n(gate + i, n));
    store_n(hn::Mul(a.value, load_n(up + i, n)), out + i, n);
  }
}

template <Activation kActivation>
HWY_INLINE void gated_back_row(const float* gate, const float* up, const float* dout, float* dgate,
                               float* dup, size_t cols) {
  for (size_t i = 0; i < cols; i += kVectorLanes) {
    const size_t n = cols - i;
    const ValueSlope a = activate<kActivation>(load_n(gate + i, n));
    const V32 upstream = load_n(dout + i, n);
    const V32 factor = load_n(up + i, n);
    store_n(hn::Mul(hn::Mul(upstream, factor), a.slope), dgate + i, n);
    store_n(hn::Mul(upstream, a.value), dup + i, n);
  }
}

void gated_rows(const GatedArgs& args, int64_t begin, int64_t end) {
  const auto cols = static_cast<size_t>(args.out.cols);
  for (int64_t r = begin; r < end; ++r) {
    const float* gate = args.gate.f32() + r * args.gate.stride;
    const float* up = args.up.f32() + r * args.up.stride;
    float* out = args.out.f32() + r * args.out.stride;
    if (args.activation == Activation::silu) {
      gated_row<Activation::silu>(gate, up, out, cols);
    } else {
      gated_row<Activation::gelu_tanh>(gate, up, out, cols);
    }
  }
}

void gated_back_rows(const GatedBackArgs& args, int64_t begin, int64_t end) {
  const auto cols = static_cast<size_t>(args.dout.cols);
  for (int64_t r = begin; r < end; ++r) {
    const float* gate = args.gate.f32() + r * args.gate.stride;
    const float* up = args.up.f32() + r * args.up.stride;
    const float* dout = args.dout.f32() + r * args.dout.stride;
    float* dgate = args.dgate.f32() + r * args.dgate.stride;
    float* dup = args.dup.f32() + r * args.dup.stride;
    if (args.activation == Activation::silu) {
      gated_back_row<Activation::silu>(gate, up, dout, dgate, dup, cols);
    } else {
      gated_back_row<Activation::gelu_tanh>(gate, up, dout, dgate, dup, cols);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(gated_rows);
HWY_EXPORT(gated_back_rows);

void gated(const GatedArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(gated_rows)(args, begin, end);
  });
}

void gated_back(const GatedBackArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(gated_back_rows)(args, begin, end);
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
