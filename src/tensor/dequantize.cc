#include "tensor/dequantize.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace retro::tensor {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in the file");

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// The 4-bit number i of 32: the 16 low nibbles first.
int nibble(const uint8_t (&quants)[16], int i) {
  return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}

/// The 5-bit number i of 32.
int five_bits(const uint8_t (&quants)[16], const uint8_t (&high_bits)[4], int i) {
  return nibble(quants, i) | (((high_bits[i / 8] >> (i % 8)) & 1) << 4);
}

void decode(const BlockQ4_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(nibble(block.quants, i) - 8);
}

void decode(const BlockQ4_1& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(nibble(block.quants, i)) + minimum;
}

void decode(const BlockQ5_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(five_bits(block.quants, block.high_bits, i) - 16);
  }
}

void decode(const BlockQ5_1& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float minimum = f16_to_f32(block.minimum);
  for (int i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(five_bits(block.quants, block.high_bits, i)) + minimum;
  }
}

void decode(const BlockQ8_0& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(block.quants[i]);
}

void decode(const BlockQ4_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min_scale = f16_to_f32(block.min_scale);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin packed = unpack_scale_min(block.scales, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_min = min_scale * static_cast<float>(packed.min);
    const uint8_t* quants = block.quants + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      out[32 * group + i] = group_scale * static_cast<float>((quants[i] >> shift) & 15) - group_min;
    }
  }
}

void decode(const BlockQ5_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min_scale = f16_to_f32(block.min_scale);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin packed = unpack_scale_min(block.scales, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_min = min_scale * static_cast<float>(packed.min);
    const uint8_t* quants = block.quants + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      const int q = ((quants[i] >> shift) & 15) | (((block.high_bits[i] >> group) & 1) << 4);
      out[32 * group + i] = group_scale * static_cast<float>(q) - group_min;
    }
  }
}

void decode(const BlockQ6_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int run = 0; run < 8; ++run) {
    const int half = run / 4;
    const uint8_t* low = block.low_bits + 64 * half + 32 * (run % 2);
    const uint8_t* high = block.high_bits + 32 * half;
    const int low_shift = run % 4 < 2 ? 0 : 4;
    const int high_shift = 2 * (run % 4);
    for (int i = 0; i < 32; ++i) {
      const int q = ((low[i] >> low_shift) & 15) | (((high[i] >> high_shift) & 3) << 4);
      const int group = 2 * run + i / 16;
      const float group_scale = scale * static_cast<float>(block.scales[group]);
      out[32 * run + i] = group_scale * static_cast<float>(q - 32);
    }
  }
}

template <typename Block>
void decode_row(const std::byte* row, float* out, int64_t n, int64_t block_elements) {
  RETRO_CHECK(n % block_elements == 0);
  for (int64_t i = 0; i < n; i += block_elements, row += sizeof(Block)) decode(load<Block>(row), out + i);
}

void widen_row(const std::byte* row, float* out, int64_t n, float (*widen)(uint16_t)) {
  for (int64_t i = 0; i < n; ++i) out[i] = widen(load<uint16_t>(row + 2 * i));
}

}  // namespace

void dequantize_row(DType dtype, const std::byte* row, float* out, int64_t n) {
  RETRO_CHECK(n >= 0);
  switch (dtype) {
    case DType::F32:
      if (n > 0) std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::F16:
      return widen_row(row, out, n, f16_to_f32);
    case DType::BF16:
      return widen_row(row, out, n, bf16_to_f32);
    case DType::Q4_0:
      return decode_row<BlockQ4_0>(row, out, n, 32);
    case DType::Q4_1:
      return decode_row<BlockQ4_1>(row, out, n, 32);
    case DType::Q5_0:
      return decode_row<BlockQ5_0>(row, out, n, 32);
    case DType::Q5_1:
      return decode_row<BlockQ5_1>(row, out, n, 32);
    case DType::Q8_0:
      return decode_row<BlockQ8_0>(row, out, n, 32);
    case DType::Q4_K:
      return decode_row<BlockQ4_K>(row, out, n, 256);
    case DType::Q5_K:
      return decode_row<BlockQ5_K>(row, out, n, 256);
    case DType::Q6_K:
      return decode_row<BlockQ6_K>(row, out, n, 256);
    default:
      fail(ErrorKind::model, "{} weights cannot be decoded; convert the model to one of {}",
           dtype_name(dtype), decodable_names());
  }
}

}  // namespace retro::tensor
