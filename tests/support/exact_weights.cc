#include "tests/support/exact_weights.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/random.h"
#include "tensor/half.h"
#include "tests/support/block_scale.h"

namespace retro::test {
namespace {

using tensor::DType;

struct Scales {
  DType dtype;
  float scale;
  float minimum;  // where the format has one
};

/// Scales that make whole numbers of the format's: IQ formats have a half, a quarter or an eighth in them. 2
/// for what is not here.
constexpr Scales kScales[] = {
    {DType::Q4_1, 2, -3},   {DType::Q5_1, 2, -3},  {DType::Q2_K, 1, 2},  {DType::Q3_K, 1, 0},
    {DType::Q4_K, 1, 2},    {DType::Q5_K, 1, 2},   {DType::Q6_K, 1, 0},  {DType::IQ4_XS, 1, 0},
    {DType::IQ2_XXS, 8, 0}, {DType::IQ2_XS, 8, 0}, {DType::IQ2_S, 8, 0}, {DType::IQ3_XXS, 4, 0},
    {DType::IQ3_S, 1, 0},   {DType::IQ1_S, 8, 0},  {DType::IQ1_M, 8, 0},
};

/// Puts such numbers into the block; the rest of it stays random.
void set_scales(DType dtype, std::byte* block) {
  const auto* found = std::ranges::find(kScales, dtype, &Scales::dtype);
  const Scales scales = found == std::end(kScales) ? Scales{dtype, 2, 0} : *found;
  set_scale(dtype, block, scales.scale);
  const std::vector<size_t> offsets = half_offsets(dtype);
  if (offsets.size() < 2) return;
  const uint16_t minimum = tensor::f32_to_f16(scales.minimum);
  std::memcpy(block + offsets[1], &minimum, sizeof(minimum));
}

void put_plain(DType dtype, int value, std::byte* at) {
  const auto number = static_cast<float>(value);
  if (dtype == DType::F32) {
    std::memcpy(at, &number, sizeof(number));
    return;
  }
  const uint16_t bits = dtype == DType::F16 ? tensor::f32_to_f16(number) : tensor::f32_to_bf16(number);
  std::memcpy(at, &bits, sizeof(bits));
}

}  // namespace

std::vector<std::byte> exact_weights(DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
  const RandomStream random(seed, "exact weights");
  const tensor::DTypeInfo& info = tensor::dtype_info(dtype);
  std::vector<std::byte> data(static_cast<size_t>(rows * tensor::row_bytes(dtype, cols)));
  const auto size = static_cast<size_t>(info.block_bytes);
  for (size_t at = 0; at < data.size(); at += size) {
    if (info.block_elements == 1) {
      put_plain(dtype, static_cast<int>(random.below(at, 17)) - 8, data.data() + at);
      continue;
    }
    for (size_t i = 0; i < size; ++i) data[at + i] = static_cast<std::byte>(random.bits(at + i) & 255);
    set_scales(dtype, data.data() + at);
  }
  return data;
}

}  // namespace retro::test
