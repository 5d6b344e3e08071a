// Attention of rows that are alone in their segment (AttentionArgs::fast): against the double reference, and
// the same bits on any threads and instruction set, alone and beside other rows.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/reference/attention_ref.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/linear_case.h"

namespace retro::test {
namespace {

using device::DType;

struct Decoded {
  std::vector<float> out;
  std::vector<float> lse;
};

Decoded decode(device::Device& device, const AttentionOperands& operands) {
  TestMatrix out(operands.pass.rows(), operands.q.cols(), operands.q.cols() + 2);
  TestMatrix lse(operands.pass.rows(), operands.spec.heads, operands.spec.heads + 1);
  device::AttentionArgs args = operands.args(out, lse);
  args.fast = true;
  device.run(args, operands.pass.args());
  EXPECT_TRUE(out.gaps_untouched() && lse.gaps_untouched());
  return {floats(out), floats(lse)};
}

std::vector<double> bounds_of(const Sums& sums) {
  std::vector<double> bounds;
  for (size_t i = 0; i < sums.value.size(); ++i)
    bounds.push_back(product_bound(4, sums.magnitude[i], sums.value[i]) + 1e-36);
  return bounds;
}

/// Segments of which the last token is in the pass.
std::vector<SegmentSpec> lone(std::initializer_list<int32_t> lengths) {
  std::vector<SegmentSpec> specs;
  for (const int32_t length : lengths) specs.push_back({-1, length, length - 1, length});
  return specs;
}

class AttentionDecode : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionDecode, IsTheFormulaUnderEverySetting) {
  const AttentionOperands operands(GetParam());
  Decoded result;
  same_under_every_setting([&](device::Device& device) {
    result = decode(device, operands);
    std::vector<float> all = result.out;
    append(all, result.lse);
    return all;
  });
  const AttentionOutput expected = attention_ref(operands.reference());
  EXPECT_TRUE(within(result.out, expected.out.value, bounds_of(expected.out), operands.q.cols()));
  EXPECT_TRUE(within(result.lse, expected.lse.value, bounds_of(expected.lse), GetParam().heads));
}

std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all = {
      {.name = "one_token", .segments = lone({1}), .head_dim = 1},
      {.name = "smollm2",
       .segments = lone({200, 64, 65, 1, 128}),
       .heads = 9,
       .kv_heads = 3,
       .head_dim = 64,
       .carry = DType::F16},
      {.name = "gemma3_local", .segments = lone({190, 30}), .heads = 4, .head_dim = 256, .window = 64},
      {.name = "gemma3_global", .segments = lone({130}), .heads = 4, .head_dim = 256, .carry = DType::F16},
      {.name = "window_one", .segments = lone({70}), .heads = 2, .kv_heads = 2, .window = 1},
      {.name = "many_heads_a_key", .segments = lone({70}), .heads = 71, .head_dim = 16},
      {.name = "beside_prompts",
       .segments = {{-1, 90, 20, 90}, {-1, 75, 74, 75}, {-1, 3}, {-1, 12, 11, 12}},
       .heads = 6,
       .kv_heads = 2,
       .head_dim = 20,
       .carry = DType::F16},
      {.name = "of_a_fork",
       .segments = {{-1, 100, 0, 0}, {0, 9, 8, 9}, {0, 40, 39, 40}, {0, 1}},
       .heads = 6,
       .kv_heads = 3,
       .head_dim = 20,
       .carry = DType::F16},
      {.name = "soft_cap", .segments = lone({150, 20}), .heads = 2, .score_scale = 4, .softcap = 5},
      {.name = "scores_far_below_zero", .segments = lone({150}), .heads = 2, .score_offset = -400},
      {.name = "scores_beyond_exp", .segments = lone({150}), .heads = 2, .score_offset = 400},
      {.name = "one_key_wins", .segments = lone({150}), .heads = 2, .score_scale = 40},
  };
  for (const int32_t head_dim : {7, 9, 31, 32, 80, 96, 128, 512}) {
    all.push_back({.name = "dim", .segments = lone({67}), .heads = 5, .kv_heads = 1, .head_dim = head_dim});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionDecode, testing::ValuesIn(cases()), [](const auto& test) {
  return std::string(test.param.name) + std::to_string(test.param.head_dim);
});

TEST(AttentionDecodeBits, OfARowAreThoseBesideOthers) {
  AttentionCase alone_case = {
      .segments = lone({140}), .heads = 9, .kv_heads = 3, .head_dim = 64, .carry = DType::F16};
  const AttentionOperands alone(alone_case);
  AttentionCase packed_case = alone_case;
  packed_case.segments = {{-1, 30}, {-1, 80, 79, 80}, alone_case.segments[0], {-1, 9}};
  AttentionOperands packed(packed_case);
  const auto copy_row = [](const TestMatrix& from, int64_t row, TestMatrix& to, int64_t to_row) {
    for (int64_t c = 0; c < from.cols(); ++c) to.set(to_row, c, from.get(row, c));
  };
  copy_row(alone.q, 0, packed.q, 31);
  for (int32_t p = 0; p < 140; ++p) {
    copy_row(alone.carry_k, alone.pass.segments[0].carry_begin + p, packed.carry_k,
             packed.pass.segments[2].carry_begin + p);
    copy_row(alone.carry_v, alone.pass.segments[0].carry_begin + p, packed.carry_v,
             packed.pass.segments[2].carry_begin + p);
  }
  const auto device = device::make_cpu_device(2);
  const std::vector<float> expected = decode(*device, alone).out;
  const std::vector<float> out = decode(*device, packed).out;
  const auto cols = static_cast<size_t>(alone.q.cols());
  EXPECT_TRUE(same_bits(std::span(out).subspan(31 * cols, cols), expected));
}

}  // namespace
}  // namespace retro::test
