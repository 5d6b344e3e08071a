// Elementwise functions as polynomials of fused multiply-adds: a lane's bits depend on its argument alone.

#if defined(RETRO_DEVICE_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_MATH_INL_H_
#undef RETRO_DEVICE_CPU_MATH_INL_H_
#else
#define RETRO_DEVICE_CPU_MATH_INL_H_
#endif

#include "device/cpu/vector_io-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// e^x within 2 ulp, exactly 1 at 0; below -86.9 exactly 0 (so that no subnormal arises), infinity
/// above 88.73.
///
/// e^x = 2^n·e^r with |r| <= ln2/2 and e^r = 1 + r + r²·Q(r), Q the minimax polynomial of degree 4.
HWY_INLINE V32 exp(V32 x) {
  const F32 d;
  const I32 di;
  // Adding this leaves the nearest integer n in the low bits of the sum, biased by 126, ready for an exponent
  // field.
  const V32 shift = hn::Set(d, 0x1.8p23F + 126.0F);
  const V32 clamped = hn::Min(hn::Set(d, 89.0F), x);  // in this order a NaN stays
  const V32 shifted = hn::MulAdd(clamped, hn::Set(d, 0x1.715476p+0F), shift);
  const V32 n = hn::Sub(shifted, shift);
  const V32 high = hn::NegMulAdd(n, hn::Set(d, 0x1.62e430p-1F), clamped);
  const V32 r = hn::NegMulAdd(n, hn::Set(d, -0x1.05c610p-29F), high);
  V32 q = hn::Set(d, 0x1.5dcc4ep-10F);
  q = hn::MulAdd(q, r, hn::Set(d, 0x1.11ea64p-7F));
  q = hn::MulAdd(q, r, hn::Set(d, 0x1.556422p-5F));
  q = hn::MulAdd(q, r, hn::Set(d, 0x1.5554fcp-3F));
  q = hn::MulAdd(q, r, hn::Set(d, 0x1.fffff6p-2F));
  const V32 power = hn::Add(hn::MulAdd(hn::Mul(r, r), q, r), hn::Set(d, 1.0F));
  const V32 half_scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));  // 2^(n-1)
  const V32 value = hn::Mul(hn::Mul(power, half_scale), hn::Set(d, 2.0F));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -86.9F)), value);
}

/// σ(x) = 1 / (1 + e^-x) and 1 - σ(x), each to a few ulp of itself; a σ below 1e-38 is 0.
struct SigmoidPair {
  V32 sigmoid;
  V32 complement;
};

HWY_INLINE SigmoidPair sigmoid(V32 x) {
  const F32 d;
  const V32 one = hn::Set(d, 1.0F);
  const V32 e = exp(hn::Min(hn::Set(d, 87.0F), hn::Neg(x)));
  const V32 inverse = hn::Div(one, hn::Add(one, e));
  return {hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0F)), inverse), hn::Mul(e, inverse)};
}

/// cap·tanh(x / cap), within a few ulp of cap.
HWY_INLINE V32 soft_cap(V32 x, float cap) {
  const F32 d;
  const V32 twice = sigmoid(hn::Mul(x, hn::Set(d, 2.0F / cap))).sigmoid;
  return hn::MulAdd(twice, hn::Set(d, 2.0F * cap), hn::Set(d, -cap));
}

/// The derivative of soft_cap where its value is `capped`.
HWY_INLINE V32 soft_cap_slope(V32 capped, float cap) {
  const F32 d;
  const V32 ratio = hn::Mul(capped, hn::Set(d, 1.0F / cap));
  return hn::NegMulAdd(ratio, ratio, hn::Set(d, 1.0F));
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
