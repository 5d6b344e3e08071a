// Where a quantized block keeps what all its values are multiplied by.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor/dtype.h"

namespace retro::test {

/// Byte offsets of the half-precision numbers of a block: its scale first, then that of its minima. None for
/// the types that keep their scale otherwise (IQ1_M, MXFP4, NVFP4).
std::vector<size_t> half_offsets(tensor::DType dtype);

/// Writes the scale of a block. MXFP4 takes a power of two; NVFP4 gets the nearest that it has to 1, ½, 2
/// and 1½ times it in its four groups. Both have their values doubled (kE2m1Values), and 1 means 1 for those.
void set_scale(tensor::DType dtype, std::byte* block, float scale);

}  // namespace retro::test
