// Weights that are small integers in every format, so that sums with small integers are exact in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace retro::test {

/// `rows` x `cols` weights as they would lie in a GGUF; `cols` is a multiple of the type's block. Magnitudes
/// stay below 4096 (Q6_K: 128·32, IQ4_XS: 32·127), so that Σ|x·w| < 2²⁴ for |x| <= 2 and up to 2048 columns.
std::vector<std::byte> exact_weights(tensor::DType dtype, int64_t rows, int64_t cols, uint64_t seed);

}  // namespace retro::test
