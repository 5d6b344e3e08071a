// No operation allocates while it runs: what it needs is made with the device.
#include <gtest/gtest.h>

#include <vector>

#include "device/device.h"
#include "tests/support/allocations.h"
#include "tests/support/attention_case.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::DType;
using device::Matrix;

constexpr int32_t kRows = 150;

class Allocation : public testing::Test {
 protected:
  int64_t during(const device::OpArgs& op, device::PassArgs args) {
    const int64_t before = allocations_so_far();
    device->run(op, args);
    return allocations_so_far() - before;
  }
  int64_t during(const device::OpArgs& op) { return during(op, pass.args()); }

  Matrix rows(int64_t cols) { return keep({kRows, cols}); }

  Matrix keep(TestMatrix matrix) {
    matrix.fill(RandomStream(1, "rows"));
    kept.push_back(std::move(matrix));
    return kept.back().matrix();
  }

  std::unique_ptr<device::Device> device = device::make_cpu_device(3);
  TestPass pass{{{-1, kRows}}};
  std::vector<TestMatrix> kept;
  TestWeight w{DType::Q4_K, 300, 256, Fill::real};
};

TEST_F(Allocation, IsSeenByTheCounter) {
  const int64_t before = allocations_so_far();
  const std::vector<int> values(100);
  EXPECT_EQ(values.size(), 100U);
  EXPECT_GT(allocations_so_far(), before);
}

TEST_F(Allocation, IsNotDoneByElementwiseOperations) {
  const Matrix a = rows(256);
  const Matrix b = rows(256);
  const Matrix c = rows(256);
  EXPECT_EQ(during(device::EmbedArgs{w.weight(), a, 2}), 0);
  EXPECT_EQ(during(device::RmsNormArgs{a, a.f32(), b, 2, 1e-5F}), 0);
  EXPECT_EQ(during(device::RmsNormBackArgs{a, a.f32(), b, c, 2, 1e-5F, false}), 0);
  EXPECT_EQ(during(device::RopeArgs{a, b, a.f32(), 4, 64, 64, device::RopeStyle::interleaved, false}), 0);
  EXPECT_EQ(during(device::GatedArgs{a, b, c, device::Activation::gelu_tanh}), 0);
  EXPECT_EQ(during(device::GatedBackArgs{a, b, c, a, b, device::Activation::silu}), 0);
  EXPECT_EQ(during(device::AddArgs{a, b, c}), 0);
  EXPECT_EQ(during(device::SplitArgs{a, {b}, false}), 0);
  EXPECT_EQ(during(device::CopyArgs{a, b}), 0);
  EXPECT_EQ(during(device::ZeroArgs{a, 0}), 0);
}

TEST_F(Allocation, IsNotDoneByProductsWithWeights) {
  const Matrix x = rows(256);
  const Matrix y = rows(300);
  const Matrix u = rows(8);
  const Matrix a = keep({8, 256});
  const Matrix bt = keep({8, 300});
  const device::Lora lora{a.data, bt.data, DType::F32, 8, 0.5F};
  EXPECT_EQ(during(device::LinearArgs{x, w.weight(), y, lora, u}), 0);
  const Matrix du = rows(8);
  const Matrix dx = rows(256);
  EXPECT_EQ(during(device::LinearBackArgs{y, w.weight(), dx, false, lora, x, u, du, a.f32(), bt.f32()}), 0);
}

TEST_F(Allocation, IsNotDoneByAttention) {
  const AttentionOperands operands({.segments = {{-1, kRows}}, .heads = 4, .kv_heads = 2, .head_dim = 64});
  TestMatrix out(kRows, 256);
  TestMatrix lse(kRows, 4);
  const device::AttentionArgs forward = operands.args(out, lse);
  const device::PassArgs args = operands.pass.args();
  EXPECT_EQ(during(forward, args), 0);
  const Matrix dk = keep({operands.pass.carry_size, 128});
  const Matrix dv = keep({operands.pass.carry_size, 128});
  const Matrix dq = rows(256);
  EXPECT_EQ(during(device::AttentionBackArgs{forward, operands.dout.matrix(), dq, dk, dv, rows(4)}, args), 0);
  EXPECT_EQ(during(device::KvStoreArgs{dk, dv, operands.carry_k.matrix(), operands.carry_v.matrix()}, args),
            0);
  EXPECT_EQ(during(device::KvLoadGradArgs{dk, dv, dk, dv}, args), 0);
}

TEST_F(Allocation, IsNotDoneByTheHeadOrTheOptimizer) {
  device::PassArgs args = pass.args();
  std::vector<device::Query> queries;
  for (int32_t r = 0; r < kRows; r += 2) queries.push_back({r, r});
  const std::vector<float> g(queries.size(), 0.5F);
  std::vector<float> logprobs(queries.size());
  args.queries = queries;
  args.dlogprobs = g;
  args.logprobs = logprobs;
  args.head_mode = device::HeadMode::backward;
  const device::HeadArgs head{rows(256), w.weight(), rows(256), rows(256), rows(256), rows(300), 32};
  EXPECT_EQ(during(head, args), 0);
  std::vector<float> values(5000, 0.5F);
  std::vector<float> m(5000);
  std::vector<float> v(5000);
  const int64_t before = allocations_so_far();
  const double sum = device->sum_of_squares(values);
  device->adamw(
      {.weights = values, .gradients = values, .m = m, .v = v, .lr = 0.1F, .beta1 = 0.9F, .beta2 = 0.9F});
  device->sgd({.weights = values, .gradients = m, .lr = 0.1F});
  EXPECT_EQ(allocations_so_far() - before, 0);
  EXPECT_EQ(sum, 1250);
}

}  // namespace
}  // namespace retro::test
