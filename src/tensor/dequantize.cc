#include "tensor/dequantize.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "tensor/block_decoders.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in the file");

using DecodeRow = void (*)(const std::byte* row, float* out, int64_t n);

template <DType kDtype, typename Block>
void decode_row(const std::byte* row, float* out, int64_t n) {
  const int64_t elements = dtype_info(kDtype).block_elements;
  RETRO_CHECK(n % elements == 0);
  for (int64_t i = 0; i < n; i += elements, row += sizeof(Block)) {
    Block block;
    std::memcpy(&block, row, sizeof(block));
    decode(block, out + i);
  }
}

void copy_row(const std::byte* row, float* out, int64_t n) {
  if (n > 0) std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float));
}

template <float (*kWiden)(uint16_t)>
void widen_row(const std::byte* row, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, row + 2 * i, sizeof(bits));
    out[i] = kWiden(bits);
  }
}

struct Decoder {
  DType dtype;
  DecodeRow decode;
};

constexpr Decoder kDecoders[] = {
    {DType::F32, copy_row},
    {DType::F16, widen_row<f16_to_f32>},
    {DType::BF16, widen_row<bf16_to_f32>},
    {DType::Q4_0, decode_row<DType::Q4_0, BlockQ4_0>},
    {DType::Q4_1, decode_row<DType::Q4_1, BlockQ4_1>},
    {DType::Q5_0, decode_row<DType::Q5_0, BlockQ5_0>},
    {DType::Q5_1, decode_row<DType::Q5_1, BlockQ5_1>},
    {DType::Q8_0, decode_row<DType::Q8_0, BlockQ8_0>},
    {DType::Q1_0, decode_row<DType::Q1_0, BlockQ1_0>},
    {DType::Q2_0, decode_row<DType::Q2_0, BlockQ2_0>},
    {DType::TQ1_0, decode_row<DType::TQ1_0, BlockTQ1_0>},
    {DType::TQ2_0, decode_row<DType::TQ2_0, BlockTQ2_0>},
    {DType::Q2_K, decode_row<DType::Q2_K, BlockQ2_K>},
    {DType::Q3_K, decode_row<DType::Q3_K, BlockQ3_K>},
    {DType::Q4_K, decode_row<DType::Q4_K, BlockQ4_K>},
    {DType::Q5_K, decode_row<DType::Q5_K, BlockQ5_K>},
    {DType::Q6_K, decode_row<DType::Q6_K, BlockQ6_K>},
    {DType::IQ4_NL, decode_row<DType::IQ4_NL, BlockIQ4_NL>},
    {DType::IQ4_XS, decode_row<DType::IQ4_XS, BlockIQ4_XS>},
    {DType::MXFP4, decode_row<DType::MXFP4, BlockMXFP4>},
    {DType::NVFP4, decode_row<DType::NVFP4, BlockNVFP4>},
    {DType::IQ2_XXS, decode_row<DType::IQ2_XXS, BlockIQ2_XXS>},
    {DType::IQ2_XS, decode_row<DType::IQ2_XS, BlockIQ2_XS>},
    {DType::IQ2_S, decode_row<DType::IQ2_S, BlockIQ2_S>},
    {DType::IQ3_XXS, decode_row<DType::IQ3_XXS, BlockIQ3_XXS>},
    {DType::IQ3_S, decode_row<DType::IQ3_S, BlockIQ3_S>},
    {DType::IQ1_S, decode_row<DType::IQ1_S, BlockIQ1_S>},
    {DType::IQ1_M, decode_row<DType::IQ1_M, BlockIQ1_M>},
};

}  // namespace

void dequantize_row(DType dtype, const std::byte* row, float* out, int64_t n) {
  RETRO_CHECK(n >= 0);
  const auto* decoder = std::ranges::find(kDecoders, dtype, &Decoder::dtype);
  if (decoder == std::end(kDecoders)) {
    fail(ErrorKind::model, "{} weights cannot be decoded; convert the model to one of {}", dtype_name(dtype),
         decodable_names());
  }
  decoder->decode(row, out, n);
}

}  // namespace retro::tensor
