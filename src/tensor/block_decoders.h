// One block of each format to f32, in plain code; dequantize_row goes through them.
#pragma once

#include "tensor/quant_blocks.h"

namespace retro::tensor {

// All write as many values as the block has (DTypeInfo::block_elements).

// decode_basic.cc
void decode(const BlockQ4_0& block, float* out);
void decode(const BlockQ4_1& block, float* out);
void decode(const BlockQ5_0& block, float* out);
void decode(const BlockQ5_1& block, float* out);
void decode(const BlockQ8_0& block, float* out);
void decode(const BlockQ1_0& block, float* out);
void decode(const BlockQ2_0& block, float* out);
void decode(const BlockTQ1_0& block, float* out);
void decode(const BlockTQ2_0& block, float* out);

// decode_k.cc
void decode(const BlockQ2_K& block, float* out);
void decode(const BlockQ3_K& block, float* out);
void decode(const BlockQ4_K& block, float* out);
void decode(const BlockQ5_K& block, float* out);
void decode(const BlockQ6_K& block, float* out);

// decode_codebook.cc
void decode(const BlockIQ4_NL& block, float* out);
void decode(const BlockIQ4_XS& block, float* out);
void decode(const BlockMXFP4& block, float* out);
void decode(const BlockNVFP4& block, float* out);
void decode(const BlockIQ2_XXS& block, float* out);
void decode(const BlockIQ2_XS& block, float* out);
void decode(const BlockIQ2_S& block, float* out);
void decode(const BlockIQ3_XXS& block, float* out);
void decode(const BlockIQ3_S& block, float* out);
void decode(const BlockIQ1_S& block, float* out);
void decode(const BlockIQ1_M& block, float* out);

}  // namespace retro::tensor
