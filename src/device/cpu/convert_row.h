// A row of numbers from one floating-point dtype to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/op_args.h"

namespace retro::device::cpu {

/// to[0 .. n) = from[0 .. n), rounded to nearest even where it must be; F32, F16 and BF16.
void convert_row(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t n) noexcept;

/// F32, F16 or BF16.
bool is_float(DType dtype);

/// Bytes of an element of a floating-point dtype.
constexpr int64_t float_bytes(DType dtype) {
  return dtype == DType::F32 ? 4 : 2;
}

inline std::byte* row_address(const Matrix& matrix, int64_t row) {
  return static_cast<std::byte*>(matrix.data) + row * matrix.stride * float_bytes(matrix.dtype);
}

}  // namespace retro::device::cpu
