#include "device/cpu/convert_row.h"

#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convert_row.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <cstring>

#include "device/cpu/vector_io-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

void f16_to_f32_row(const uint16_t* from, float* to, size_t n) {
  for (size_t i = 0; i < n; i += kVectorLanes) store_n(load_f16_n(from + i, n - i), to + i, n - i);
}

void f32_to_f16_row(const float* from, uint16_t* to, size_t n) {
  for (size_t i = 0; i < n; i += kVectorLanes) store_f16_n(load_n(from + i, n - i), to + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(f16_to_f32_row);
HWY_EXPORT(f32_to_f16_row);

namespace {

float load_element(DType dtype, const void* from, int64_t i) {
  if (dtype == DType::F32) return static_cast<const float*>(from)[i];
  const uint16_t bits = static_cast<const uint16_t*>(from)[i];
  return dtype == DType::F16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
}

void store_element(DType dtype, float value, void* to, int64_t i) {
  if (dtype == DType::F32) {
    static_cast<float*>(to)[i] = value;
  } else {
    static_cast<uint16_t*>(to)[i] =
        dtype == DType::F16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
  }
}

}  // namespace

bool is_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

void convert_row(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t n) noexcept {
  const auto count = static_cast<size_t>(n);
  if (from_dtype == to_dtype) {
    std::memmove(to, from, count * static_cast<size_t>(float_bytes(to_dtype)));
  } else if (from_dtype == DType::F16 && to_dtype == DType::F32) {
    HWY_DYNAMIC_DISPATCH(f16_to_f32_row)(static_cast<const uint16_t*>(from), static_cast<float*>(to), count);
  } else if (from_dtype == DType::F32 && to_dtype == DType::F16) {
    HWY_DYNAMIC_DISPATCH(f32_to_f16_row)(static_cast<const float*>(from), static_cast<uint16_t*>(to), count);
  } else {
    for (int64_t i = 0; i < n; ++i) store_element(to_dtype, load_element(from_dtype, from, i), to, i);
  }
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
