// The products with weights: every element is the chain of multiply-adds that the header promises, in every
// format, at sizes around the tiles, on every instruction set; nothing is read or written outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "device/cpu/linear.h"
#include "tests/reference/linear_ref.h"
#include "tests/support/compare.h"
#include "tests/support/cpu_targets.h"
#include "tests/support/linear_case.h"

namespace retro::test {
namespace {

using device::DType;

struct Size {
  int64_t rows = 0;  // tokens
  int64_t out = 0;   // rows of W
  int64_t in = 0;    // columns of W
};

class LinearProduct : public testing::TestWithParam<DType> {
 protected:
  int64_t block() const { return tensor::dtype_info(GetParam()).block_elements; }

  /// Sizes with one dimension swept at a time, around the tiles (12 and 6 rows; 32, 16 and 8 columns), the
  /// panel's depth and the group of columns.
  std::vector<Size> sizes() const {
    std::vector<Size> all;
    const int64_t unit = block();
    for (const int64_t rows : sizes_around(12))
      all.push_back({rows, 40, std::max<int64_t>(unit, 40 / unit * unit)});
    for (const int64_t out : sizes_around(32)) all.push_back({7, out, std::max<int64_t>(unit, 32)});
    for (const int64_t out : {127, 128, 129, 257, 320, 321, 640, 641}) all.push_back({5, out, 2 * unit});
    for (const int64_t out : {63, 128, 257, 330}) all.push_back({1, out, unit == 1 ? 300 : 2 * unit});
    if (unit == 1) {
      for (const int64_t in : sizes_around(32)) all.push_back({7, 33, in});
      for (const int64_t in : {127, 128, 129, 319, 320, 321, 640, 641, 707}) all.push_back({5, 40, in});
    } else {
      for (int64_t in = unit; in <= 1024; in += unit) all.push_back({5, 40, in});
    }
    return all;
  }

  /// NaN, or what is to be added to.
  static TestMatrix output(int64_t rows, int64_t cols, bool accumulate) {
    if (accumulate) return filled(rows, cols, cols + 5, Fill::real, 3);
    return {rows, cols, cols + 5};
  }

  ThreadPool pool{1};
  device::cpu::Workspace workspace{pool};
};

std::string describe(int64_t target, const Size& size, bool accumulate, const char* product) {
  return cpu_target_name(target) + ' ' + product + " rows " + std::to_string(size.rows) + " out " +
         std::to_string(size.out) + " in " + std::to_string(size.in) + (accumulate ? " accumulate" : "");
}

TEST(CpuTargets, AreThereAndDiffer) {
  ASSERT_FALSE(cpu_targets().empty())
      << "this machine has no instruction set that the kernels are compiled for";
  std::set<std::string> names;
  for (const int64_t target : cpu_targets()) {
    const OnTarget on(target);
    names.insert(device::cpu::instruction_set());
  }
  EXPECT_EQ(names.size(), cpu_targets().size());
}

TEST_P(LinearProduct, ForwardIsTheChainInTheOrderOfK) {
  for (const Size& size : sizes()) {
    const TestWeight w(GetParam(), size.out, size.in, Fill::real);
    const TestMatrix x = filled(size.rows, size.in, size.in + 3, Fill::real, 2);
    const TestMatrix start = filled(size.rows, size.out, size.out, Fill::real, 3);
    for (const bool accumulate : {false, true}) {
      const auto zeros = std::vector<float>(static_cast<size_t>(size.rows * size.out));
      const auto expected = chain_nt(floats(x), w, size.rows, accumulate ? floats(start) : zeros);
      for (const int64_t target : cpu_targets()) {
        SCOPED_TRACE(describe(target, size, accumulate, "nt"));
        const OnTarget on(target);
        TestMatrix y = output(size.rows, size.out, accumulate);
        device::cpu::product_nt(x.matrix().f32(), size.in + 3, size.rows, w.weight(), y.matrix().f32(),
                                size.out + 5, accumulate, workspace);
        ASSERT_TRUE(same_bits(floats(y), expected, size.out));
        ASSERT_TRUE(y.gaps_untouched());
      }
    }
  }
}

TEST_P(LinearProduct, BackwardIsTheChainInTheOrderOfWeightRows) {
  for (const Size& size : sizes()) {
    const TestWeight w(GetParam(), size.out, size.in, Fill::real);
    const TestMatrix dy = filled(size.rows, size.out, size.out + 3, Fill::real, 2);
    const TestMatrix start = filled(size.rows, size.in, size.in, Fill::real, 3);
    for (const bool accumulate : {false, true}) {
      const auto zeros = std::vector<float>(static_cast<size_t>(size.rows * size.in));
      const auto expected = chain_nn(floats(dy), w, size.rows, accumulate ? floats(start) : zeros);
      for (const int64_t target : cpu_targets()) {
        SCOPED_TRACE(describe(target, size, accumulate, "nn"));
        const OnTarget on(target);
        TestMatrix dx = output(size.rows, size.in, accumulate);
        device::cpu::product_nn(dy.matrix().f32(), size.out + 3, size.rows, w.weight(), dx.matrix().f32(),
                                size.in + 5, accumulate, workspace);
        ASSERT_TRUE(same_bits(floats(dx), expected, size.in));
        ASSERT_TRUE(dx.gaps_untouched());
      }
    }
  }
}

/// Rows a multiple of 4 KiB apart are gathered first, 256 at a time.
TEST_P(LinearProduct, RowsThatShareACacheSetGiveTheSameChain) {
  constexpr int64_t kStride = 1024;
  for (const Size& size : {Size{257, 70, block() == 1 ? 325 : 512}, Size{3, 135, 512}, Size{2, 33, 256}}) {
    const TestWeight w(GetParam(), size.out, size.in, Fill::real);
    const TestMatrix x = filled(size.rows, size.in, kStride, Fill::real, 2);
    const TestMatrix dy = filled(size.rows, size.out, kStride, Fill::real, 3);
    const auto y_start = std::vector<float>(static_cast<size_t>(size.rows * size.out));
    const auto dx_start = std::vector<float>(static_cast<size_t>(size.rows * size.in));
    const auto expected_y = chain_nt(floats(x), w, size.rows, y_start);
    const auto expected_dx = chain_nn(floats(dy), w, size.rows, dx_start);
    for (const int64_t target : cpu_targets()) {
      SCOPED_TRACE(describe(target, size, false, "rows 4 KiB apart"));
      const OnTarget on(target);
      TestMatrix y = output(size.rows, size.out, false);
      TestMatrix dx = output(size.rows, size.in, false);
      device::cpu::product_nt(x.matrix().f32(), kStride, size.rows, w.weight(), y.matrix().f32(),
                              size.out + 5, false, workspace);
      device::cpu::product_nn(dy.matrix().f32(), kStride, size.rows, w.weight(), dx.matrix().f32(),
                              size.in + 5, false, workspace);
      ASSERT_TRUE(same_bits(floats(y), expected_y, size.out));
      ASSERT_TRUE(same_bits(floats(dx), expected_dx, size.in));
    }
  }
}

TEST_P(LinearProduct, SumsOfIntegersAreExact) {
  const Size size = {13, 77, std::max<int64_t>(block() * 2, 352 / block() * block())};
  const TestWeight w(GetParam(), size.out, size.in, Fill::exact);
  const TestMatrix x = filled(size.rows, size.in, size.in, Fill::exact, 2);
  const TestMatrix dy = filled(size.rows, size.out, size.out, Fill::exact, 3);
  LinearInput input = {size.rows, size.in, size.out, 0, 0, x.values(), w.doubles(), {}, {}};
  const Judged forward = linear_ref(input).y;
  const Judged backward = linear_back_ref(input, dy.values()).dx;
  for (const int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_target_name(target));
    const OnTarget on(target);
    TestMatrix y(size.rows, size.out);
    TestMatrix dx(size.rows, size.in);
    device::cpu::product_nt(x.matrix().f32(), size.in, size.rows, w.weight(), y.matrix().f32(), size.out,
                            false, workspace);
    device::cpu::product_nn(dy.matrix().f32(), size.out, size.rows, w.weight(), dx.matrix().f32(), size.in,
                            false, workspace);
    EXPECT_TRUE(within(floats(y), forward.value, std::vector<double>(forward.value.size()), size.out));
    EXPECT_TRUE(within(floats(dx), backward.value, std::vector<double>(backward.value.size()), size.in));
  }
}

/// With the identity for x, the product is W itself: every pattern of a block's bits decodes as
/// dequantize_row does.
TEST_P(LinearProduct, DecodesAsTheScalarDecoder) {
  const int64_t in = std::max<int64_t>(block(), 128);
  const int64_t out = 256;
  const TestWeight w(GetParam(), out, in, Fill::real, 7);
  TestMatrix rows_of_one(in, in);
  rows_of_one.fill(0.0);
  for (int64_t i = 0; i < in; ++i) rows_of_one.set(i, i, 1);
  TestMatrix out_of_one(out, out);
  out_of_one.fill(0.0);
  for (int64_t i = 0; i < out; ++i) out_of_one.set(i, i, 1);
  for (const int64_t target : cpu_targets()) {
    SCOPED_TRACE(cpu_target_name(target));
    const OnTarget on(target);
    TestMatrix y(in, out);
    TestMatrix dx(out, in);
    device::cpu::product_nt(rows_of_one.matrix().f32(), in, in, w.weight(), y.matrix().f32(), out, false,
                            workspace);
    device::cpu::product_nn(out_of_one.matrix().f32(), out, out, w.weight(), dx.matrix().f32(), in, false,
                            workspace);
    std::vector<float> transposed(static_cast<size_t>(in * out));
    const std::vector<float> by_columns = floats(y);
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t j = 0; j < out; ++j) {
        transposed[static_cast<size_t>(j * in + i)] = by_columns[static_cast<size_t>(i * out + j)];
      }
    }
    // Adding zeros turns -0 into +0, on both sides.
    std::vector<float> expected = w.values();
    for (float& v : expected) v += 0.0F;
    EXPECT_TRUE(same_bits(transposed, expected, in));
    EXPECT_TRUE(same_bits(floats(dx), expected, in));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LinearProduct, testing::ValuesIn(decodable_dtypes()),
                         [](const auto& test) { return tensor::dtype_name(test.param); });

TEST(LinearProductTransposed, IsTheChainInTheOrderOfTheRows) {
  ThreadPool pool(1);
  device::cpu::Workspace workspace(pool);
  std::vector<Size> sizes;  // rows, columns of a, columns of b
  for (const int64_t r : sizes_around(12)) sizes.push_back({9, r, 40});
  for (const int64_t columns : sizes_around(32)) sizes.push_back({9, 8, columns});
  for (const int64_t rows : {1, 2, 63, 319, 320, 321, 700}) sizes.push_back({rows, 8, 41});
  sizes.push_back({330, 13, 300});
  for (const Size& size : sizes) {
    // Rows of b a multiple of 4 KiB apart are copied.
    for (const int64_t stride : {size.in + 3, int64_t{1024}}) {
      const TestMatrix a = filled(size.rows, size.out, size.out + 1, Fill::real, 2);
      const TestMatrix b = filled(size.rows, size.in, stride, Fill::real, 3);
      const TestMatrix start = filled(size.out, size.in, size.in, Fill::real, 4);
      const std::vector<float> left = floats(a);
      const std::vector<float> right = floats(b);
      const auto expected = chain_product({left.data(), 1, size.out}, {right.data(), size.in, 1}, size.out,
                                          size.in, size.rows, floats(start));
      for (const int64_t target : cpu_targets()) {
        SCOPED_TRACE(describe(target, size, true, "tn"));
        const OnTarget on(target);
        const TestMatrix c = filled(size.out, size.in, size.in + 5, Fill::real, 4);
        device::cpu::product_tn(a.matrix().f32(), size.out + 1, size.out, b.matrix().f32(), stride, size.in,
                                size.rows, c.matrix().f32(), size.in + 5, workspace);
        ASSERT_TRUE(same_bits(floats(c), expected, size.in));
        ASSERT_TRUE(c.gaps_untouched());
      }
    }
  }
}

}  // namespace
}  // namespace retro::test
