// Attention, both directions, against the double reference: heads that share keys, trees of segments,
// windows, parts of sequences, carries of both dtypes, and scores that an exponential without care would
// overflow on.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/reference/attention_ref.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/finite_difference.h"

namespace retro::test {
namespace {

using device::DType;

TEST(AttentionReference, GradientIsThatOfTheFunction) {
  AttentionInput in;
  in.shape = {4, 2, 3, 0.6};
  const RandomStream stream(1, "attention");
  uint64_t next = 0;
  const auto uniform = [&](size_t n) {
    std::vector<double> values;
    while (values.size() < n) values.push_back(2 * static_cast<double>(stream.uniform(next++)) - 1);
    return values;
  };
  in.q = uniform(3 * 12);
  in.k = uniform(5 * 6);
  in.v = uniform(5 * 6);
  in.seen = {{0, 1}, {1, 4, 2}, {3}};
  const std::vector<double> dout = uniform(3 * 12);
  const auto loss = [&](const AttentionInput& at) {
    const AttentionOutput out = attention_ref(at);
    double sum = 0;
    for (size_t i = 0; i < dout.size(); ++i) sum += dout[i] * out.out.value[i];
    return sum;
  };
  const AttentionGradients g = attention_back_ref(in, dout);
  const auto of = [&](std::vector<double> AttentionInput::*member) {
    return [&, member](const std::vector<double>& x) {
      AttentionInput at = in;
      at.*member = x;
      return loss(at);
    };
  };
  EXPECT_TRUE(matches_differences(g.dq.value, of(&AttentionInput::q), in.q));
  EXPECT_TRUE(matches_differences(g.dk.value, of(&AttentionInput::k), in.k));
  EXPECT_TRUE(matches_differences(g.dv.value, of(&AttentionInput::v), in.v));
}

const std::vector<SegmentSpec> kTree = {{-1, 130},     {-1, 3},           {0, 90},
                                        {0, 40, 0, 0}, {3, 100, 20, 100}, {2, 7}};

std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all = {
      {.name = "one_token", .segments = {{-1, 1}}, .head_dim = 1},
      {.name = "one_tile", .segments = {{-1, 64}}, .heads = 3, .kv_heads = 3},
      {.name = "tile_and_one", .segments = {{-1, 65}}, .heads = 2, .kv_heads = 1, .head_dim = 33},
      {.name = "packed",
       .segments = {{-1, 3}, {-1, 70}, {-1, 1}, {-1, 20}},
       .heads = 9,
       .kv_heads = 3,
       .head_dim = 20},
      {.name = "smollm2",
       .segments = {{-1, 200}},
       .heads = 9,
       .kv_heads = 3,
       .head_dim = 64,
       .carry = DType::F16},
      {.name = "gemma3_local", .segments = {{-1, 190}}, .heads = 4, .head_dim = 256, .window = 64},
      {.name = "gemma3_global",
       .segments = {{-1, 130, 5, 130}},
       .heads = 4,
       .head_dim = 256,
       .carry = DType::F16},
      {.name = "tree", .segments = kTree, .heads = 6, .kv_heads = 3, .head_dim = 20},
      {.name = "tree_f16", .segments = kTree, .heads = 6, .kv_heads = 3, .head_dim = 20, .carry = DType::F16},
      {.name = "tree_window", .segments = kTree, .heads = 6, .kv_heads = 3, .head_dim = 20, .window = 50},
      {.name = "window_one", .segments = {{-1, 70}}, .heads = 2, .kv_heads = 2, .window = 1},
      {.name = "later_part",
       .segments = {{-1, 300, 250, 251}, {-1, 200, 100, 170}},
       .heads = 2,
       .kv_heads = 2},
      {.name = "many_heads_a_key", .segments = {{-1, 70}}, .heads = 71, .head_dim = 16},
      {.name = "scores_far_below_zero", .segments = {{-1, 150}}, .heads = 2, .score_offset = -400},
      {.name = "scores_beyond_exp", .segments = {{-1, 150}}, .heads = 2, .score_offset = 400},
      {.name = "soft_cap", .segments = kTree, .heads = 4, .head_dim = 20, .score_scale = 3, .softcap = 2},
      {.name = "soft_cap_window",
       .segments = {{-1, 150}},
       .heads = 2,
       .head_dim = 33,
       .window = 40,
       .score_scale = 5,
       .softcap = 5},
      {.name = "one_key_wins", .segments = {{-1, 150}}, .heads = 2, .score_scale = 40},
  };
  for (const int32_t head_dim : {7, 9, 31, 32, 80, 128}) {
    all.push_back({.name = "dim", .segments = {{-1, 67}}, .heads = 2, .kv_heads = 1, .head_dim = head_dim});
  }
  for (const int32_t length : {15, 16, 17, 47, 48, 49, 63, 95, 97, 127, 128, 129}) {
    all.push_back({.name = "length", .segments = {{-1, length}}});
  }
  return all;
}

class Attention : public testing::TestWithParam<AttentionCase> {};

// Roundings of either sign mostly cancel in the sums, so the bound is a few units of what they are made of; a
// weight below e^-86.9 is 0.
std::vector<double> bounds_of(const Sums& sums) {
  constexpr double kFlushed = 1e-36;
  std::vector<double> bounds;
  for (size_t i = 0; i < sums.value.size(); ++i) {
    bounds.push_back(product_bound(4, sums.magnitude[i], sums.value[i]) + kFlushed);
  }
  return bounds;
}

TEST_P(Attention, BothDirectionsAreTheFormula) {
  const AttentionOperands operands(GetParam());
  const AttentionInput in = operands.reference();
  const AttentionOutput out = attention_ref(in);
  const AttentionGradients gradients = attention_back_ref(in, operands.dout.values());
  AttentionResult result;
  bool first = true;
  same_under_every_setting([&](device::Device& device) {
    const AttentionResult own = run_attention(device, operands);
    if (first) result = own;
    first = false;
    std::vector<float> all = own.out;
    for (const auto* more : {&own.lse, &own.dq, &own.dk, &own.dv}) append(all, *more);
    return all;
  });
  EXPECT_TRUE(within(result.out, out.out.value, bounds_of(out.out), operands.q.cols())) << "out";
  EXPECT_TRUE(within(result.lse, out.lse.value, bounds_of(out.lse), operands.spec.heads)) << "lse";
  EXPECT_TRUE(within(result.dq, gradients.dq.value, bounds_of(gradients.dq), operands.q.cols())) << "dq";
  EXPECT_TRUE(within(result.dk, gradients.dk.value, bounds_of(gradients.dk), operands.carry_k.cols()))
      << "dk";
  EXPECT_TRUE(within(result.dv, gradients.dv.value, bounds_of(gradients.dv), operands.carry_k.cols()))
      << "dv";
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention, testing::ValuesIn(cases()), [](const auto& test) {
  return std::string(test.param.name) + "_" + std::to_string(test.index);
});

// dk and dv are added to, so that passes and children may gather in them.
TEST(AttentionGradient, IsAddedToWhatTheCarryHolds) {
  const AttentionOperands operands({.segments = kTree, .heads = 4, .kv_heads = 2, .head_dim = 16});
  const auto device = device::make_cpu_device(2);
  const AttentionResult zero = run_attention(*device, operands);
  const AttentionResult five = run_attention(*device, operands, 5);
  EXPECT_TRUE(same_bits(five.dq, zero.dq));
  for (size_t i = 0; i < zero.dk.size(); ++i) {
    EXPECT_NEAR(five.dk[i] - 5, zero.dk[i], 4e-5);
    EXPECT_NEAR(five.dv[i] - 5, zero.dv[i], 4e-5);
  }
}

// With queries of zero every visible key weighs the same: where their number is a power of two and the values
// are small integers, the mean is exact.
TEST(AttentionForward, OfEqualScoresIsTheMean) {
  for (const int32_t window : {1, 2, 16, 64, 128}) {
    AttentionOperands operands(
        {.segments = {{-1, 300}}, .heads = 3, .kv_heads = 1, .head_dim = 24, .window = window});
    operands.q.fill(0.0);
    for (int64_t r = 0; r < 300; ++r) {
      for (int64_t e = 0; e < 24; ++e)
        operands.carry_v.set(r, e, static_cast<double>((r * 7 + e * 3) % 11 - 5));
    }
    const auto device = device::make_cpu_device(1);
    const AttentionResult result = run_attention(*device, operands);
    for (int64_t r = window - 1; r < 300; ++r) {
      for (int64_t e = 0; e < 24; ++e) {
        double sum = 0;
        for (int64_t key = r - window + 1; key <= r; ++key) sum += operands.carry_v.get(key, e);
        ASSERT_EQ(result.out[static_cast<size_t>(r * 72 + 24 + e)], sum / window)
            << "window " << window << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace retro::test
