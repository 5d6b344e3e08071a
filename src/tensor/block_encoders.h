// One block of each format from f32; quantize_row goes through them.
//
// Rounding decides a block's bytes, so each sum, product and quotient here stands in the order in which
// llama.cpp's reference quantizer computes it, in single precision.
#pragma once

#include "tensor/quant_blocks.h"

namespace retro::tensor {

// All read as many values as the block has (DTypeInfo::block_elements) and set all its bytes.

// encode_basic.cc
void encode(const float* values, BlockQ4_0& block);
void encode(const float* values, BlockQ4_1& block);
void encode(const float* values, BlockQ5_0& block);
void encode(const float* values, BlockQ5_1& block);
void encode(const float* values, BlockQ8_0& block);

// encode_k.cc
void encode(const float* values, BlockQ4_K& block);
void encode(const float* values, BlockQ5_K& block);
void encode(const float* values, BlockQ6_K& block);

}  // namespace retro::tensor
