// F32, F16 and BF16: no blocks, rows of any length.

#if defined(RETRO_DEVICE_CPU_DECODE_PLAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_PLAIN_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_PLAIN_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_PLAIN_INL_H_
#endif

#include "device/cpu/decode/bits-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// values[0 .. n) of the row's elements k, k + 1, …; reads no element beyond.
struct PlainF32 {
  static HWY_INLINE void values(const std::byte* row, int64_t k, int64_t n, float* out) {
    std::memcpy(out, row + 4 * k, static_cast<size_t>(4 * n));
  }
};

struct PlainF16 {
  static HWY_INLINE void values(const std::byte* row, int64_t k, int64_t n, float* out) {
    const hn::CappedTag<float, 16> d;
    const hn::Rebind<uint16_t, decltype(d)> bits;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const auto* from = reinterpret_cast<const uint16_t*>(row + 2 * k);
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      hn::StoreU(hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(bits, from + i))), d, out + i);
    }
    for (; i < n; ++i) out[i] = half_at(row + 2 * (k + i));
  }
};

struct PlainBF16 {
  static HWY_INLINE void values(const std::byte* row, int64_t k, int64_t n, float* out) {
    const hn::CappedTag<float, 16> d;
    const hn::RebindToUnsigned<decltype(d)> words;
    const hn::Rebind<uint16_t, decltype(d)> bits;
    const auto* from = reinterpret_cast<const uint16_t*>(row + 2 * k);
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const auto wide = hn::PromoteTo(words, hn::LoadU(bits, from + i));
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(wide)), d, out + i);
    }
    for (; i < n; ++i) {
      uint16_t value;
      std::memcpy(&value, row + 2 * (k + i), sizeof(value));
      out[i] = tensor::bf16_to_f32(value);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
