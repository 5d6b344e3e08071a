// The encoders: numbers to rows of blocks, as a file holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/dtype.h"

namespace retro::tensor {

/// Whether quantize_row can write the type.
bool encodable(DType dtype);

/// "F32, F16, BF16, Q4_0, …": the types that quantize_row can write, for error messages.
std::string encodable_names();

/// Encodes `n` values as a row of `row_bytes(dtype, n)` bytes; `n` is a multiple of the type's block and the
/// type is encodable. `row` needs no alignment. The bytes are those of llama.cpp's quantizer without an
/// importance matrix. A value that is not finite is refused with its position.
void quantize_row(DType dtype, const float* values, std::byte* row, int64_t n);

}  // namespace retro::tensor
