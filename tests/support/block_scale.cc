#include "tests/support/block_scale.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace retro::test {
namespace {

using tensor::DType;

struct Row {
  DType dtype;
  std::vector<size_t> offsets;
};

/// The types whose scale is not what the block begins with.
const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {DType::Q4_1, {0, 2}},
      {DType::Q5_1, {0, 2}},
      {DType::Q4_K, {0, 2}},
      {DType::Q5_K, {0, 2}},
      {DType::Q2_K, {offsetof(tensor::BlockQ2_K, scale), offsetof(tensor::BlockQ2_K, min_scale)}},
      {DType::Q3_K, {offsetof(tensor::BlockQ3_K, scale)}},
      {DType::Q6_K, {offsetof(tensor::BlockQ6_K, scale)}},
      {DType::TQ1_0, {offsetof(tensor::BlockTQ1_0, scale)}},
      {DType::TQ2_0, {offsetof(tensor::BlockTQ2_0, scale)}},
      {DType::IQ1_M, {}},
      {DType::MXFP4, {}},
      {DType::NVFP4, {}},
  };
  return table;
}

/// The code whose value is nearest.
uint8_t nearest_ue4m3_half(float scale) {
  uint8_t best = 0;
  for (uint8_t code = 0; code < 0x7f; ++code) {
    const float distance = std::abs(tensor::unpack_ue4m3_half(code) - scale);
    if (distance < std::abs(tensor::unpack_ue4m3_half(best) - scale)) best = code;
  }
  return best;
}

}  // namespace

std::vector<size_t> half_offsets(DType dtype) {
  const auto row = std::ranges::find(rows(), dtype, &Row::dtype);
  return row == rows().end() ? std::vector<size_t>{0} : row->offsets;
}

void set_scale(DType dtype, std::byte* block, float scale) {
  const uint16_t half = tensor::f32_to_f16(scale);
  if (dtype == DType::MXFP4) {
    block[0] = static_cast<std::byte>(std::ilogb(scale) + 128);
  } else if (dtype == DType::NVFP4) {
    constexpr float kOfGroup[4] = {1, 0.5F, 2, 1.5F};
    for (int g = 0; g < 4; ++g) block[g] = static_cast<std::byte>(nearest_ue4m3_half(kOfGroup[g] * scale));
  } else if (dtype == DType::IQ1_M) {  // a nibble on top of each of four words
    for (size_t j = 0; j < 4; ++j) {
      std::byte& top = block[offsetof(tensor::BlockIQ1_M, scales) + 2 * j + 1];
      top = (top & std::byte{0x0f}) | static_cast<std::byte>(((half >> (4 * j)) & 15) << 4);
    }
  } else {
    std::memcpy(block + half_offsets(dtype).front(), &half, sizeof(half));
  }
}

}  // namespace retro::test
