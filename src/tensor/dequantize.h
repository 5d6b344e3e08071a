// The scalar decoders: the reference for every kernel that reads quantized weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace retro::tensor {

/// Decodes `n` values of a row into `out`; `n` is a multiple of the type's block and the type is decodable
/// (DTypeInfo). `row` needs no alignment. Each product and difference is rounded to f32 on its own, so the
/// bits are those of the `gguf` Python package's `dequantize`.
void dequantize_row(DType dtype, const std::byte* row, float* out, int64_t n);

}  // namespace retro::tensor
