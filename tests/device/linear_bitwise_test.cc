// What must not change a bit of the linear operation: threads, instruction set, the other rows of the batch,
// and where a sum over rows is cut into passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "tests/support/compare.h"
#include "tests/support/cpu_targets.h"
#include "tests/support/linear_op.h"

namespace retro::test {
namespace {

using device::DType;

constexpr LinearSize kSizes[] = {
    {1, 512, 576, 8}, {13, 512, 192, 8}, {61, 1024, 40, 16}, {50, 256, 1100, 3}, {200, 256, 32, 8},
};

std::vector<float> run_whole(const LinearSize& size, DType dtype, int threads) {
  ThreadPool pool(threads);
  device::cpu::Workspace workspace(pool);
  LinearOp op(size, dtype, DType::F32, Fill::real, 2);
  op.forward(workspace);
  op.backward(workspace, true);
  return op.outputs();
}

class LinearBits : public testing::TestWithParam<DType> {};

TEST_P(LinearBits, AreTheSameForAnyThreadsAndInstructionSet) {
  for (const LinearSize& size : kSizes) {
    const std::vector<float> expected = run_whole(size, GetParam(), 1);
    for (const int64_t target : cpu_targets()) {
      for (const int threads : {1, 2, 3, 7}) {
        SCOPED_TRACE(cpu_target_name(target) + ' ' + std::to_string(threads) + " threads " + name_of(size));
        const OnTarget on(target);
        ASSERT_TRUE(same_bits(run_whole(size, GetParam(), threads), expected));
      }
    }
  }
}

TEST_P(LinearBits, AreTheSameForARowAloneAndInAnyBatch) {
  ThreadPool pool(2);
  device::cpu::Workspace workspace(pool);
  const LinearSize size = {31, 512, 136, 8};
  LinearOp whole(size, GetParam(), DType::F32, Fill::real, 2);
  whole.forward(workspace);
  whole.backward(workspace, true);
  for (const int64_t step : {1, 2, 5, 13, 30}) {
    SCOPED_TRACE("passes of " + std::to_string(step) + " rows");
    LinearOp parts(size, GetParam(), DType::F32, Fill::real, 2);
    for (int64_t begin = 0; begin < size.rows; begin += step) {
      const int64_t end = std::min(size.rows, begin + step);
      parts.forward(workspace, begin, end);
      parts.backward(workspace, true, begin, end);
    }
    ASSERT_TRUE(same_bits(parts.outputs(), whole.outputs()));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LinearBits, testing::ValuesIn(decodable_dtypes()),
                         [](const auto& test) { return tensor::dtype_name(test.param); });

}  // namespace
}  // namespace retro::test
