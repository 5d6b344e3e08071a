#include "tests/support/exact_weights.h"

#include <cstring>

#include "base/random.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace retro::test {
namespace {

using tensor::DType;

constexpr uint16_t kHalfOne = 0x3c00;
constexpr uint16_t kHalfTwo = 0x4000;
constexpr uint16_t kHalfMinusThree = 0xc200;

/// Puts whole numbers where the format has its half-precision scales; the rest of a block stays random.
void set_scales(DType dtype, std::byte* block) {
  const auto put = [block](size_t offset, uint16_t half) {
    std::memcpy(block + offset, &half, sizeof(half));
  };
  switch (dtype) {
    case DType::Q4_1:
    case DType::Q5_1:
      put(0, kHalfTwo);
      put(2, kHalfMinusThree);
      return;
    case DType::Q4_K:
    case DType::Q5_K:
      put(0, kHalfOne);
      put(2, kHalfTwo);
      return;
    case DType::Q6_K:
      put(offsetof(tensor::BlockQ6_K, scale), kHalfOne);
      return;
    default:
      put(0, kHalfTwo);
  }
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
