#include "tensor/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "tensor/block_encoders.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are written as they lie in the file");

using EncodeRow = void (*)(const float* values, std::byte* row, int64_t n);

template <DType kDtype, typename Block>
void encode_row(const float* values, std::byte* row, int64_t n) {
  const int64_t elements = dtype_info(kDtype).block_elements;
  RETRO_CHECK(n % elements == 0);
  for (int64_t i = 0; i < n; i += elements, row += sizeof(Block)) {
    Block block;
    encode(values + i, block);
    std::memcpy(row, &block, sizeof(block));
  }
}

void copy_row(const float* values, std::byte* row, int64_t n) {
  if (n > 0) std::memcpy(row, values, static_cast<size_t>(n) * sizeof(float));
}

template <uint16_t (*kNarrow)(float)>
void narrow_row(const float* values, std::byte* row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = kNarrow(values[i]);
    std::memcpy(row + 2 * i, &bits, sizeof(bits));
  }
}

struct Encoder {
  DType dtype;
  EncodeRow encode;
};

constexpr Encoder kEncoders[] = {
    {DType::F32, copy_row},
    {DType::F16, narrow_row<f32_to_f16>},
    {DType::BF16, narrow_row<f32_to_bf16>},
    {DType::Q4_0, encode_row<DType::Q4_0, BlockQ4_0>},
    {DType::Q4_1, encode_row<DType::Q4_1, BlockQ4_1>},
    {DType::Q5_0, encode_row<DType::Q5_0, BlockQ5_0>},
    {DType::Q5_1, encode_row<DType::Q5_1, BlockQ5_1>},
    {DType::Q8_0, encode_row<DType::Q8_0, BlockQ8_0>},
    {DType::Q4_K, encode_row<DType::Q4_K, BlockQ4_K>},
    {DType::Q5_K, encode_row<DType::Q5_K, BlockQ5_K>},
    {DType::Q6_K, encode_row<DType::Q6_K, BlockQ6_K>},
};

const Encoder* find_encoder(DType dtype) {
  const auto* found = std::ranges::find(kEncoders, dtype, &Encoder::dtype);
  return found == std::end(kEncoders) ? nullptr : found;
}

/// A number or a block's scale beyond what f16 holds became infinite.
void require_finite(DType dtype, const float* values, const std::byte* row, int64_t n) {
  constexpr int64_t kStep = 256;  // whole blocks of any type
  std::array<float, kStep> decoded;
  const DTypeInfo& info = dtype_info(dtype);
  for (int64_t i = 0; i < n; i += kStep) {
    const int64_t count = std::min(kStep, n - i);
    dequantize_row(dtype, row + i / info.block_elements * info.block_bytes, decoded.data(), count);
    const auto* end = decoded.data() + count;
    const auto* odd = std::find_if_not(static_cast<const float*>(decoded.data()), end,
                                       [](float value) { return std::isfinite(value); });
    if (odd == end) continue;
    fail(ErrorKind::model, "value {} of the row is {}, too large for {}; write it as BF16 or F32",
         i + (odd - decoded.data()), values[i + (odd - decoded.data())], info.name);
  }
}

}  // namespace

bool encodable(DType dtype) {
  return find_encoder(dtype) != nullptr;
}

std::string encodable_names() {
  std::string names;
  for (const Encoder& encoder : kEncoders) {
    names.append(names.empty() ? "" : ", ").append(dtype_name(encoder.dtype));
  }
  return names;
}

void quantize_row(DType dtype, const float* values, std::byte* row, int64_t n) {
  RETRO_CHECK(n >= 0);
  const Encoder* encoder = find_encoder(dtype);
  if (encoder == nullptr) {
    fail(ErrorKind::model, "{} weights cannot be written; choose one of {}", dtype_name(dtype),
         encodable_names());
  }
  const float* odd = std::find_if_not(values, values + n, [](float value) { return std::isfinite(value); });
  if (odd != values + n) {
    fail(ErrorKind::model, "value {} of the row is {}; only finite numbers can be written", odd - values,
         *odd);
  }
  encoder->encode(values, row, n);
  require_finite(dtype, values, row, n);
}

}  // namespace retro::tensor
