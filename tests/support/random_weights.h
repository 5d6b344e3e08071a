// Deterministic random weights in any decodable format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace retro::test {

/// `rows` x `cols` weights of mean 0 (or `mean`, for unquantized types only) and about standard deviation
/// `sigma`, as they would lie in a GGUF. Quantized blocks are drawn as blocks, not rounded from numbers:
/// every bit pattern of the quants occurs. `cols` is a multiple of the type's block. The same seed and name
/// give the same bytes.
std::vector<std::byte> random_weights(tensor::DType dtype, int64_t rows, int64_t cols, float sigma,
                                      uint64_t seed, std::string_view name, float mean = 0);

}  // namespace retro::test
