// The products of sampling: rows in 8 bits against a plain rounding, products against double references, and
// their bits over threads, instruction sets and batches.
#include "device/cpu/fast_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "device/cpu/kernels.h"
#include "device/device.h"
#include "tests/reference/linear_ref.h"
#include "tests/support/compare.h"
#include "tests/support/cpu_targets.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::DType;
using device::QuantizedGroup;

constexpr int64_t kGroup = QuantizedGroup::kSize;

bool has_blocks(DType dtype) {
  return tensor::dtype_info(dtype).block_elements > 1;
}

/// x in 8 bits, with a group's room between the rows.
TestMatrix quantized(const TestMatrix& x, ThreadPool& pool) {
  const int64_t cols = device::quantized_columns(x.cols());
  TestMatrix out(x.rows(), cols, cols + 16);
  device::PassArgs pass;
  pass.rows = static_cast<int32_t>(x.rows());
  device::cpu::quantize({x.matrix(), out.matrix()}, pass, pool);
  return out;
}

std::vector<QuantizedGroup> groups_of(const TestMatrix& x8) {
  const device::Matrix m = x8.matrix();
  const int64_t groups = m.cols * 4 / static_cast<int64_t>(sizeof(QuantizedGroup));
  std::vector<QuantizedGroup> all;
  for (int64_t r = 0; r < x8.rows(); ++r) {
    const auto* row = reinterpret_cast<const QuantizedGroup*>(m.f32() + r * m.stride);
    all.insert(all.end(), row, row + groups);
  }
  return all;
}

TEST(Quantize, RoundsToTheNearestMultipleOfTheLargest) {
  const TestMatrix x = filled(5, 96, 101, Fill::real, 7);
  const std::vector<float> values = floats(x);
  for (const int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_target_name(target));
    const OnTarget on(target);
    ThreadPool pool(2);
    const std::vector<QuantizedGroup> groups = groups_of(quantized(x, pool));
    ASSERT_EQ(groups.size(), 15U);
    for (size_t g = 0; g < groups.size(); ++g) {
      const float* from = values.data() + 32 * g;
      float largest = 0;
      for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(from[i]));
      const QuantizedGroup& group = groups[g];
      EXPECT_EQ(group.scale, largest / 127);
      int sums[2] = {0, 0};
      for (int i = 0; i < 32; ++i) {
        EXPECT_EQ(group.values[i], static_cast<int>(std::nearbyint(from[i] * (127 / largest)))) << i;
        sums[i / 16] += group.values[i];
      }
      EXPECT_EQ(group.offset, -128 * (sums[0] + sums[1]));
      EXPECT_EQ(group.sum, group.scale * static_cast<float>(sums[0] + sums[1]));
      for (int half = 0; half < 2; ++half) {
        EXPECT_EQ(group.half_offsets[half], -128 * sums[half]);
        EXPECT_EQ(group.half_sums[half], group.scale * static_cast<float>(sums[half]));
      }
    }
  }
}

TEST(Quantize, KeepsZerosAndShowsWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  ThreadPool pool(1);
  for (const float special : {0.0F, 1e-38F, 1e-42F, kInfinity, -kInfinity, std::nanf("")}) {
    TestMatrix x(1, 32);
    x.fill(0.0);
    x.set(0, 5, special);
    const QuantizedGroup group = groups_of(quantized(x, pool))[0];
    for (const int8_t value : group.values) EXPECT_EQ(value, 0);
    EXPECT_EQ(std::isnan(group.scale), !std::isfinite(special)) << special;
    if (std::isfinite(special)) {
      EXPECT_EQ(group.scale, 0.0F);
    }
  }
}

class FastProduct : public testing::TestWithParam<DType> {
 protected:
  int64_t block() const { return std::max<int64_t>(32, tensor::dtype_info(GetParam()).block_elements); }

  /// y of x and w; NaN between its rows stays.
  std::vector<float> run(const TestMatrix& x, const TestWeight& w, int threads = 1) {
    ThreadPool pool(threads);
    device::cpu::Workspace workspace(pool);
    const device::Weight weight = w.weight();
    TestMatrix y(x.rows(), weight.rows, weight.rows + 5);
    if (has_blocks(GetParam())) {
      const TestMatrix x8 = quantized(x, pool);
      device::cpu::fast_product(x.matrix(), x8.matrix(), x.rows(), weight, y.matrix(), workspace);
    } else {
      device::cpu::fast_product(x.matrix(), {}, x.rows(), weight, y.matrix(), workspace);
    }
    EXPECT_TRUE(y.gaps_untouched());
    return floats(y);
  }

  /// What the product multiplies: x, or its rounded rows.
  std::vector<double> factors(const TestMatrix& x) {
    if (!has_blocks(GetParam())) return x.values();
    ThreadPool pool(1);
    std::vector<double> values;
    for (const QuantizedGroup& group : groups_of(quantized(x, pool))) {
      for (const int8_t v : group.values) values.push_back(static_cast<double>(group.scale) * v);
    }
    return values;
  }
};

struct Size {
  int64_t rows = 0;
  int64_t out = 0;
  int64_t in = 0;
};

std::vector<Size> sizes(int64_t block, bool plain) {
  std::vector<Size> all;
  for (const int64_t rows : sizes_around(6)) all.push_back({rows, 40, block});
  for (const int64_t out : sizes_around(32)) all.push_back({3, out, block});
  for (int64_t in = block; in <= 1536; in += block) all.push_back({2, 33, in});
  if (plain) {
    for (const int64_t in : sizes_around(32)) all.push_back({3, 9, in});
    all.push_back({7, 41, 707});
  }
  return all;
}

/// The double product of the rounded rows. A weight is rounded once or twice when it is decoded, a product's
/// scale once, and a chain has a link or two for each group; scaled quants and minimum are each below twice
/// the row's largest weight.
TEST_P(FastProduct, IsTheProductOfTheRoundedRows) {
  for (const Size& size : sizes(block(), !has_blocks(GetParam()))) {
    const TestWeight w(GetParam(), size.out, size.in, Fill::real);
    const TestMatrix x = filled(size.rows, size.in, size.in + 3, Fill::real, 2);
    const LinearInput input = {size.rows, size.in, size.out, 0, 0, factors(x), w.doubles(), {}, {}};
    const Judged expected = linear_ref(input).y;
    std::vector<double> bounds(expected.value.size());
    for (int64_t r = 0; r < size.rows; ++r) {
      double magnitude = 0;
      for (int64_t k = 0; k < size.in; ++k)
        magnitude += std::abs(input.x[static_cast<size_t>(r * size.in + k)]);
      for (int64_t j = 0; j < size.out; ++j) {
        double largest = 0;
        for (int64_t k = 0; k < size.in; ++k)
          largest = std::max(largest, std::abs(input.w[static_cast<size_t>(j * size.in + k)]));
        const auto i = static_cast<size_t>(r * size.out + j);
        const int64_t links = has_blocks(GetParam()) ? 4 * size.in / kGroup : size.in / 16 + 5;
        bounds[i] =
            product_bound(links, has_blocks(GetParam()) ? 4 * magnitude * largest : expected.magnitude[i],
                          expected.value[i]);
      }
    }
    for (const int64_t target : fast_cpu_targets()) {
      SCOPED_TRACE(cpu_target_name(target) + " rows " + std::to_string(size.rows) + " out " +
                   std::to_string(size.out) + " in " + std::to_string(size.in));
      const OnTarget on(target);
      ASSERT_TRUE(within(run(x, w), expected.value, bounds, size.out));
    }
  }
}

/// Whole numbers with a 127 in each group are kept by the rounding, and their sums are exact.
TEST_P(FastProduct, OfWholeNumbersIsExact) {
  const Size size = {7, 45, block() * (block() == 256 ? 2 : 12)};
  const TestWeight w(GetParam(), size.out, size.in, Fill::exact);
  TestMatrix x = filled(size.rows, size.in, size.in, Fill::exact, 2);
  if (has_blocks(GetParam())) {
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t k = 0; k < size.in; k += kGroup)
        x.set(r, k + (r + k / kGroup) % kGroup, k % 64 == 0 ? 127 : -127);
    }
  }
  const LinearInput input = {size.rows, size.in, size.out, 0, 0, x.values(), w.doubles(), {}, {}};
  const Judged expected = linear_ref(input).y;
  for (const int64_t target : fast_cpu_targets()) {
    SCOPED_TRACE(cpu_target_name(target));
    const OnTarget on(target);
    EXPECT_TRUE(within(run(x, w), expected.value, std::vector<double>(expected.value.size()), size.out));
  }
}

/// A number is rounded by at most half of its group's scale.
TEST_P(FastProduct, IsNearTheExactProduct) {
  const Size size = {5, 70, 2 * block()};
  const TestWeight w(GetParam(), size.out, size.in, Fill::real);
  const TestMatrix x = filled(size.rows, size.in, size.in, Fill::real, 3);
  const LinearInput input = {size.rows, size.in, size.out, 0, 0, x.values(), w.doubles(), {}, {}};
  const Judged exact = linear_ref(input).y;
  std::vector<double> bounds(exact.value.size());
  for (int64_t r = 0; r < size.rows; ++r) {
    for (int64_t j = 0; j < size.out; ++j) {
      double bound = 1e-5;
      for (int64_t g = 0; g < size.in; g += kGroup) {
        double largest = 0;
        double weights = 0;
        for (int64_t k = g; k < g + kGroup; ++k) {
          largest = std::max(largest, std::abs(input.x[static_cast<size_t>(r * size.in + k)]));
          weights += std::abs(input.w[static_cast<size_t>(j * size.in + k)]);
        }
        bound += largest / 127 / 2 * weights;
      }
      bounds[static_cast<size_t>(r * size.out + j)] = bound;
    }
  }
  EXPECT_TRUE(within(run(x, w), exact.value, bounds, size.out));
}

TEST_P(FastProduct, HasTheSameBitsInAnyBatchOnAnyThreadsAndInstructionSet) {
  const Size size = {17, 165, block() == 256 ? 768 : 1376};
  const TestWeight w(GetParam(), size.out, size.in / block() * block(), Fill::real);
  const TestMatrix x = filled(size.rows, w.weight().cols, w.weight().cols + 3, Fill::real, 4);
  const std::vector<float> expected = run(x, w);
  for (const int64_t target : fast_cpu_targets()) {
    const OnTarget on(target);
    for (const int threads : {1, 2, 7}) {
      SCOPED_TRACE(cpu_target_name(target) + ' ' + std::to_string(threads) + " threads");
      ASSERT_TRUE(same_bits(run(x, w, threads), expected, size.out));
    }
    for (int64_t rows = 1; rows < size.rows; ++rows) {
      SCOPED_TRACE(cpu_target_name(target) + " the last " + std::to_string(rows) + " rows");
      TestMatrix part(rows, x.cols());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t k = 0; k < x.cols(); ++k) part.set(r, k, x.get(size.rows - rows + r, k));
      }
      const std::span<const float> last(expected.data() + (size.rows - rows) * size.out,
                                        static_cast<size_t>(rows * size.out));
      ASSERT_TRUE(same_bits(run(part, w), last, size.out));
    }
  }
}

/// y + u·Bᵗ, the chain going on behind the base's product, with u in f32.
TEST_P(FastProduct, IsFollowedByTheAdapter) {
  const Size size = {6, 50, block()};
  constexpr int32_t kRank = 8;
  const TestWeight w(GetParam(), size.out, size.in, Fill::real);
  const TestWeight a(DType::F16, kRank, size.in, Fill::real, 2);
  const TestWeight bt(DType::F16, kRank, size.out, Fill::real, 3);
  const TestMatrix x = filled(size.rows, size.in, size.in, Fill::real, 4);
  ThreadPool pool(2);
  device::cpu::Workspace workspace(pool);
  const TestMatrix x8 = quantized(x, pool);
  TestMatrix y(size.rows, size.out);
  TestMatrix u(size.rows, kRank);
  device::LinearArgs args;
  args.x = x.matrix();
  args.w = w.weight();
  args.y = y.matrix();
  args.u = u.matrix();
  args.lora = {a.weight().data, bt.weight().data, DType::F16, kRank, 0.5F};
  args.fast = true;
  if (has_blocks(GetParam())) args.x8 = x8.matrix();
  device::cpu::linear(args, size.rows, workspace);
  EXPECT_TRUE(same_bits(floats(y), chain_nn(floats(u), bt, size.rows, run(x, w)), size.out));
}

INSTANTIATE_TEST_SUITE_P(Formats, FastProduct, testing::ValuesIn(decodable_dtypes()),
                         [](const auto& test) { return tensor::dtype_name(test.param); });

TEST(FastHead, IsNearTheExactOneWhateverTheChunk) {
  constexpr int64_t kIn = 96;
  constexpr int64_t kVocabulary = 300;
  for (const DType dtype : {DType::Q8_0, DType::F16}) {
    const TestWeight w(dtype, kVocabulary, kIn, Fill::real);
    const TestMatrix h = filled(6, kIn, kIn, Fill::real, 2);
    const std::vector<device::Query> queries = {{0, 5}, {1, 299}, {3, 0}, {5, 77}};
    const TestPass rows({{-1, 6}});
    const auto logprobs = [&](bool fast, int32_t chunk, int threads) {
      const auto device = device::make_cpu_device(threads);
      TestMatrix gathered(chunk, kIn);
      TestMatrix logits(chunk, kVocabulary);
      TestMatrix gathered8(chunk, device::quantized_columns(kIn));
      std::vector<float> out(queries.size(), std::nanf(""));
      device::PassArgs pass = rows.args();
      pass.queries = queries;
      pass.logprobs = out;
      device::HeadArgs args{h.matrix(), w.weight(), {}, gathered.matrix(), {}, logits.matrix(), chunk};
      args.fast = fast;
      if (has_blocks(dtype)) args.gathered8 = gathered8.matrix();
      device->run(args, pass);
      return out;
    };
    const std::vector<float> exact = logprobs(false, 64, 1);
    const std::vector<float> fast = logprobs(true, 64, 1);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(fast[i], exact[i], 0.02);
    for (const int32_t chunk : {1, 3}) {
      for (const int threads : {1, 7}) EXPECT_TRUE(same_bits(logprobs(true, chunk, threads), fast));
    }
  }
}

TEST(FastLinear, NamesWhatItNeeds) {
  const auto device = device::make_cpu_device(1);
  float memory[16] = {};
  const device::Matrix f32{memory, 64, 64, DType::F32};
  device::LinearArgs args;
  args.x = args.y = f32;
  args.w = {nullptr, 64, 64, DType::Q8_0};
  args.fast = true;
  const auto reason = [&] { return device->unsupported(args).value_or(""); };
  EXPECT_NE(reason().find("Q8_0"), std::string::npos) << reason();
  EXPECT_NE(reason().find("32 F32 columns"), std::string::npos) << reason();
  args.x8 = {memory, 32, 32, DType::F32};
  EXPECT_EQ(reason(), "");
  args.x8.stride = 33;
  EXPECT_NE(reason(), "");
  args.w.dtype = DType::F16;
  args.x8 = {};
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(device->unsupported(device::QuantizeArgs{f32, {memory, 32, 32, DType::F32}}), std::nullopt);
  EXPECT_NE(device->unsupported(device::QuantizeArgs{f32, {memory, 31, 32, DType::F32}}), std::nullopt);
  EXPECT_NE(device->unsupported(device::QuantizeArgs{{memory, 33, 33, DType::F32}, f32}), std::nullopt);
}

}  // namespace
}  // namespace retro::test
