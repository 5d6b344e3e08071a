#include "tests/support/random_weights.h"

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"
#include "tests/support/block_scale.h"

namespace retro::test {
namespace {

using tensor::DType;

/// Draws numbers one after the other.
class Draws {
 public:
  Draws(uint64_t seed, std::string_view name) : stream_(seed, name) {}

  void bytes(void* to, size_t size) {
    auto* at = static_cast<uint8_t*>(to);
    for (size_t i = 0; i < size; ++i) at[i] = static_cast<uint8_t>(stream_.bits(next_++) >> 56);
  }
  /// Mean 0, standard deviation about 1: a sum of four uniforms, within ±3.5.
  float normal() {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += stream_.uniform(next_++);
    return (sum - 2) * 1.7320508F;
  }
  /// A block's scale: `typical` times 0.75 to 1.25.
  uint16_t scale(float typical) {
    return tensor::f32_to_f16(typical * (0.75F + stream_.uniform(next_++) / 2));
  }
  /// For a format of any kind of scale: the same spread around `typical`, of either sign where it has one.
  /// Powers of two are drawn such that the mean square is that of `typical`.
  float scale_of(DType dtype, float typical) {
    const float draw = stream_.uniform(next_++);
    if (dtype == DType::MXFP4) {
      const float power = std::exp2(std::floor(std::log2(typical)));
      const float ratio = typical / power;
      return draw < (ratio * ratio - 1) / 3 ? 2 * power : power;
    }
    const float size = typical * (0.75F + draw / 2);
    return dtype != DType::NVFP4 && stream_.bits(next_++) % 2 == 1 ? -size : size;
  }

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

// The standard deviation of n equally likely whole numbers is sqrt((n² - 1) / 12).
constexpr float kSpread16 = 4.61F;
constexpr float kSpread32 = 9.23F;
constexpr float kSpread64 = 18.5F;
constexpr float kSpread256 = 73.9F;

/// Zero lies in the middle of the numbers 0 … 2^bits - 1.
uint16_t centering_minimum(uint16_t scale, int largest) {
  return tensor::f32_to_f16(-tensor::f16_to_f32(scale) * static_cast<float>(largest) / 2);
}

void center(tensor::BlockQ4_0& block, float sigma, Draws& draws) {
  block.scale = draws.scale(sigma / kSpread16);
}

void center(tensor::BlockQ4_1& block, float sigma, Draws& draws) {
  block.scale = draws.scale(sigma / kSpread16);
  block.minimum = centering_minimum(block.scale, 15);
}

void center(tensor::BlockQ5_0& block, float sigma, Draws& draws) {
  block.scale = draws.scale(sigma / kSpread32);
}

void center(tensor::BlockQ5_1& block, float sigma, Draws& draws) {
  block.scale = draws.scale(sigma / kSpread32);
  block.minimum = centering_minimum(block.scale, 31);
}

void center(tensor::BlockQ8_0& block, float sigma, Draws& draws) {
  block.scale = draws.scale(sigma / kSpread256);
}

/// Gives each group a scale of 32 … 63 and as minimum the same number, so that one `min_scale` centers all
/// groups.
void equal_scales_and_minimums(uint8_t (&scales)[12]) {
  for (int i = 0; i < 4; ++i) {
    scales[i] |= 0xa0;  // groups i and i + 4 have their sixth bit
    scales[i + 4] = scales[i];
    scales[i + 8] = static_cast<uint8_t>((scales[i + 8] & 15) * 17);
  }
}

void center(tensor::BlockQ4_K& block, float sigma, Draws& draws) {
  equal_scales_and_minimums(block.scales);
  block.scale = draws.scale(sigma / kSpread16 / 48);
  block.min_scale = static_cast<uint16_t>(centering_minimum(block.scale, 15) ^ 0x8000U);
}

void center(tensor::BlockQ5_K& block, float sigma, Draws& draws) {
  equal_scales_and_minimums(block.scales);
  block.scale = draws.scale(sigma / kSpread32 / 48);
  block.min_scale = static_cast<uint16_t>(centering_minimum(block.scale, 31) ^ 0x8000U);
}

void center(tensor::BlockQ6_K& block, float sigma, Draws& draws) {
  block.scale = draws.scale(sigma / kSpread64 / kSpread256);
}

/// Q2_K: each group's scale and minimum the same number, and the common one so that 1.5 of 0 … 3 is zero.
void center_q2_k(std::byte* bytes) {
  tensor::BlockQ2_K block;
  std::memcpy(&block, bytes, sizeof(block));
  for (uint8_t& scale : block.scales) scale = static_cast<uint8_t>((scale & 15) * 17);
  block.min_scale = tensor::f32_to_f16(1.5F * tensor::f16_to_f32(block.scale));
  std::memcpy(bytes, &block, sizeof(block));
}

template <typename Block>
std::vector<std::byte> blocks(size_t bytes, float sigma, Draws& draws) {
  std::vector<std::byte> result(bytes);
  for (size_t at = 0; at < bytes; at += sizeof(Block)) {
    Block block;
    draws.bytes(&block, sizeof(block));
    center(block, sigma, draws);
    std::memcpy(result.data() + at, &block, sizeof(block));
  }
  return result;
}

void draw_block(DType dtype, std::vector<std::byte>& block, float scale, Draws& draws) {
  draws.bytes(block.data(), block.size());
  set_scale(dtype, block.data(), scale);
  if (dtype == DType::Q2_K) center_q2_k(block.data());
}

/// The root of the mean square of a block's values where its scale is 1, from many random blocks.
float unit_spread(DType dtype, Draws& draws) {
  constexpr int kBlocks = 64;
  const tensor::DTypeInfo& info = tensor::dtype_info(dtype);
  std::vector<std::byte> block(static_cast<size_t>(info.block_bytes));
  std::vector<float> values(static_cast<size_t>(info.block_elements));
  double squares = 0;
  for (int i = 0; i < kBlocks; ++i) {
    draw_block(dtype, block, 1, draws);
    tensor::dequantize_row(dtype, block.data(), values.data(), info.block_elements);
    for (const float value : values) squares += static_cast<double>(value) * value;
  }
  return static_cast<float>(std::sqrt(squares / (kBlocks * static_cast<double>(values.size()))));
}

/// Blocks of the formats without a `center`. The scale's sign changes from block to block where it has one,
/// so that the mean is 0 also where the quants' is not.
std::vector<std::byte> scaled_blocks(DType dtype, size_t bytes, float sigma, Draws& draws) {
  const float scale = sigma / unit_spread(dtype, draws);
  std::vector<std::byte> block(static_cast<size_t>(tensor::dtype_info(dtype).block_bytes));
  std::vector<std::byte> result;
  result.reserve(bytes);
  while (result.size() < bytes) {
    draw_block(dtype, block, draws.scale_of(dtype, scale), draws);
    result.insert(result.end(), block.begin(), block.end());
  }
  return result;
}

template <typename T, typename Convert>
std::vector<std::byte> numbers(size_t count, float sigma, float mean, Draws& draws, Convert convert) {
  std::vector<std::byte> result(count * sizeof(T));
  for (size_t i = 0; i < count; ++i) {
    const T number = convert(mean + sigma * draws.normal());
    std::memcpy(result.data() + i * sizeof(T), &number, sizeof(T));
  }
  return result;
}

}  // namespace

std::vector<std::byte> random_weights(DType dtype, int64_t rows, int64_t cols, float sigma, uint64_t seed,
                                      std::string_view name, float mean) {
  Draws draws(seed, name);
  const auto count = static_cast<size_t>(rows * cols);
  const auto bytes = static_cast<size_t>(rows * tensor::row_bytes(dtype, cols));
  switch (dtype) {
    case DType::F32:
      return numbers<float>(count, sigma, mean, draws, [](float x) { return x; });
    case DType::F16:
      return numbers<uint16_t>(count, sigma, mean, draws, tensor::f32_to_f16);
    case DType::BF16:
      return numbers<uint16_t>(count, sigma, mean, draws, tensor::f32_to_bf16);
    case DType::Q4_0:
      return blocks<tensor::BlockQ4_0>(bytes, sigma, draws);
    case DType::Q4_1:
      return blocks<tensor::BlockQ4_1>(bytes, sigma, draws);
    case DType::Q5_0:
      return blocks<tensor::BlockQ5_0>(bytes, sigma, draws);
    case DType::Q5_1:
      return blocks<tensor::BlockQ5_1>(bytes, sigma, draws);
    case DType::Q8_0:
      return blocks<tensor::BlockQ8_0>(bytes, sigma, draws);
    case DType::Q4_K:
      return blocks<tensor::BlockQ4_K>(bytes, sigma, draws);
    case DType::Q5_K:
      return blocks<tensor::BlockQ5_K>(bytes, sigma, draws);
    case DType::Q6_K:
      return blocks<tensor::BlockQ6_K>(bytes, sigma, draws);
    default:
      return scaled_blocks(dtype, bytes, sigma, draws);
  }
}

}  // namespace retro::test
