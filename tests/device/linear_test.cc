// The linear operation with LoRA against the double reference: exactly on integers, within the computed bound
// on reals.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "tests/support/compare.h"
#include "tests/support/cpu_targets.h"
#include "tests/support/finite_difference.h"
#include "tests/support/linear_op.h"

namespace retro::test {
namespace {

using device::DType;

std::vector<LinearSize> lora_sizes() {
  std::vector<LinearSize> sizes;
  for (int64_t rank = 0; rank <= 17; ++rank) sizes.push_back({7, 64, 40, rank});
  for (const int64_t rank : {31, 32, 33, 64, 128, 256}) sizes.push_back({5, 96, 48, rank});
  for (const int64_t rows : sizes_around(12)) sizes.push_back({rows, 64, 33, 8});
  sizes.push_back({325, 64, 33, 8});
  sizes.push_back({3, 672, 390, 8});
  return sizes;
}

/// `start` + the reference, and its bound for `terms` roundings one behind the other.
testing::AssertionResult agrees(const TestMatrix& actual, const Judged& expected, int64_t terms, Fill fill,
                                const std::vector<double>& start = {}) {
  std::vector<double> values = expected.value;
  std::vector<double> bounds(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double from = start.empty() ? 0 : start[i];
    values[i] += from;
    if (fill == Fill::real)
      bounds[i] = product_bound(terms, expected.magnitude[i] + std::abs(from), values[i]);
  }
  return within(floats(actual), values, bounds, actual.cols());
}

void check_forward(LinearOp& op, device::cpu::Workspace& workspace, Fill fill) {
  op.forward(workspace);
  const LinearOutput expected = linear_ref(op.input());
  EXPECT_TRUE(agrees(op.y, expected.y, 2 * op.size.in + op.size.rank, fill));
  EXPECT_TRUE(op.y.gaps_untouched());
  if (op.size.rank == 0) return;
  EXPECT_TRUE(agrees(op.u, expected.u, op.size.in, fill));
  EXPECT_TRUE(op.u.gaps_untouched());
}

void check_backward(LinearOp& op, device::cpu::Workspace& workspace, bool accumulate, Fill fill) {
  const LinearSize& size = op.size;
  const std::vector<double> dx = accumulate ? op.dx.values() : std::vector<double>();
  const std::vector<double> da = op.da.values();
  const std::vector<double> dbt = op.dbt.values();
  op.backward(workspace, accumulate);
  const LinearGradients expected = linear_back_ref(op.input(), op.dy.values());
  EXPECT_TRUE(agrees(op.dx, expected.dx, 2 * size.out + size.rank, fill, dx));
  EXPECT_TRUE(op.dx.gaps_untouched());
  if (size.rank == 0) return;
  EXPECT_TRUE(agrees(op.du, expected.du, size.out, fill));
  EXPECT_TRUE(op.du.gaps_untouched());
  EXPECT_TRUE(agrees(op.da, expected.da, size.out + size.rows, fill, da));
  EXPECT_TRUE(agrees(op.dbt, expected.dbt, size.in + size.rows, fill, dbt));
}

void check_everywhere(const LinearSize& size, DType weight, DType lora, Fill fill, float scale) {
  ThreadPool pool(1);
  device::cpu::Workspace workspace(pool);
  for (const int64_t target : cpu_targets()) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(cpu_target_name(target) + " " + tensor::dtype_name(weight) + " lora " +
                   tensor::dtype_name(lora) + " " + name_of(size) + (accumulate ? " accumulate" : ""));
      const OnTarget on(target);
      LinearOp op(size, weight, lora, fill, scale);
      check_forward(op, workspace, fill);
      check_backward(op, workspace, accumulate, fill);
    }
  }
}

TEST(Linear, IntegersAreExactAtEverySize) {
  for (const LinearSize& size : lora_sizes()) {
    // Sums below 2^24: factors of 2, 8 and 8, and as many terms as rank or rows.
    check_everywhere(size, DType::F32, DType::F32, Fill::exact, 0.5F);
    if (HasFailure()) return;
  }
}

TEST(Linear, RealsAreWithinTheBoundAtEverySize) {
  for (const LinearSize& size : lora_sizes()) {
    check_everywhere(size, DType::Q4_1, DType::F32, Fill::real, 2);
    if (HasFailure()) return;
  }
}

TEST(Linear, TakesAdaptersOfF16) {
  check_everywhere({13, 96, 50, 8}, DType::Q8_0, DType::F16, Fill::real, 2);
  check_everywhere({13, 96, 50, 9}, DType::F32, DType::F16, Fill::exact, 0.5F);
}

TEST(Linear, TakesEveryFormat) {
  for (const DType dtype : decodable_dtypes()) {
    ASSERT_TRUE(device::cpu::can_multiply(dtype));
    check_everywhere({13, 512, 50, 8}, dtype, DType::F32, Fill::real, 2);
  }
  EXPECT_FALSE(device::cpu::can_multiply(DType::Q8_K));
  EXPECT_FALSE(device::cpu::can_multiply(DType::I32));
}

TEST(Linear, MakesNoGradientOfXWhereNoneIsWanted) {
  ThreadPool pool(1);
  device::cpu::Workspace workspace(pool);
  LinearOp op({9, 64, 40, 8}, DType::Q4_0, DType::F32, Fill::real, 2);
  LinearOp whole({9, 64, 40, 8}, DType::Q4_0, DType::F32, Fill::real, 2);
  op.forward(workspace);
  whole.forward(workspace);
  whole.backward(workspace, false);
  device::LinearBackArgs args;
  args.dy = op.dy.matrix();
  args.w = op.w.weight();
  args.lora = {op.a.weight().data, op.bt.weight().data, DType::F32, 8, 2};
  args.x = op.x.matrix();
  args.u = op.u.matrix();
  args.du = op.du.matrix();
  args.da = op.da.matrix().f32();
  args.dbt = op.dbt.matrix().f32();
  device::cpu::linear_back(args, 9, workspace);
  EXPECT_TRUE(same_bits(floats(op.da), floats(whole.da)));
  EXPECT_TRUE(same_bits(floats(op.dbt), floats(whole.dbt)));
}

TEST(Linear, DoesNothingToNoRows) {
  ThreadPool pool(2);
  device::cpu::Workspace workspace(pool);
  LinearOp op({3, 64, 40, 8}, DType::Q4_0, DType::F32, Fill::real, 2);
  const std::vector<float> da = floats(op.da);
  op.forward(workspace, 0, 0);
  op.backward(workspace, false, 0, 0);
  EXPECT_TRUE(same_bits(floats(op.da), da));
  EXPECT_TRUE(std::isnan(op.y.get(0, 0)));
}

/// Infinities and NaNs of a row stay in it; zeros beside a tile's edge meet none of them.
TEST(Linear, KeepsValuesThatAreNotFiniteInTheirRow) {
  ThreadPool pool(1);
  device::cpu::Workspace workspace(pool);
  for (const int64_t target : cpu_targets()) {
    const OnTarget on(target);
    LinearOp clean({13, 64, 41, 0}, DType::F32, DType::F32, Fill::real, 0);
    LinearOp dirty({13, 64, 41, 0}, DType::F32, DType::F32, Fill::real, 0);
    dirty.x.set(5, 3, HUGE_VAL);
    dirty.dy.set(5, 3, HUGE_VAL);
    for (LinearOp* op : {&clean, &dirty}) {
      op->forward(workspace);
      op->backward(workspace, false);
    }
    for (int64_t r = 0; r < 13; ++r) {
      EXPECT_EQ(std::isfinite(dirty.y.get(r, 0)), r != 5);
      if (r == 5) continue;
      for (int64_t c = 0; c < 41; ++c) EXPECT_EQ(dirty.y.get(r, c), clean.y.get(r, c));
      for (int64_t c = 0; c < 64; ++c) EXPECT_EQ(dirty.dx.get(r, c), clean.dx.get(r, c));
    }
  }
}

TEST(LinearReference, BackwardMatchesCentralDifferences) {
  LinearInput input = {3, 5, 4, 2, 0.7, {}, {}, {}, {}};
  const auto draw = [](const char* name, int64_t count) {
    const RandomStream random(1, name);
    std::vector<double> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * static_cast<double>(random.uniform(i)) - 1;
    return values;
  };
  input.x = draw("x", 15);
  input.w = draw("w", 20);
  input.a = draw("a", 10);
  input.bt = draw("bt", 8);
  const std::vector<double> dy = draw("dy", 12);
  const auto loss_of = [&](std::vector<double> LinearInput::*member) {
    return [&, member](const std::vector<double>& values) {
      LinearInput changed = input;
      changed.*member = values;
      const std::vector<double> y = linear_ref(changed).y.value;
      double loss = 0;
      for (size_t i = 0; i < y.size(); ++i) loss += dy[i] * y[i];
      return loss;
    };
  };
  const LinearGradients gradients = linear_back_ref(input, dy);
  EXPECT_TRUE(matches_differences(gradients.dx.value, loss_of(&LinearInput::x), input.x, 1e-9));
  EXPECT_TRUE(matches_differences(gradients.da.value, loss_of(&LinearInput::a), input.a, 1e-9));
  EXPECT_TRUE(matches_differences(gradients.dbt.value, loss_of(&LinearInput::bt), input.bt, 1e-9));
}

}  // namespace
}  // namespace retro::test
