// What must not change a bit of attention: other rows in the block, the cut into passes, and shared prompts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/attention_case.h"
#include "tests/support/compare.h"

namespace retro::test {
namespace {

using device::DType;

void copy_row(const TestMatrix& from, int64_t row, TestMatrix& to, int64_t to_row) {
  for (int64_t c = 0; c < from.cols(); ++c) to.set(to_row, c, from.get(row, c));
}

std::vector<float> rows_of(const std::vector<float>& values, int64_t cols, int64_t begin, int64_t end) {
  return {values.begin() + begin * cols, values.begin() + end * cols};
}

class AttentionBits : public testing::TestWithParam<AttentionCase> {};

// Each part of a sequence in a pass of its own, keys and values in the carry beforehand.
TEST_P(AttentionBits, OfARowAreThoseOfTheWholePass) {
  const AttentionCase& whole_case = GetParam();
  const AttentionOperands whole(whole_case);
  const auto device = device::make_cpu_device(2);
  const AttentionResult expected = run_attention(*device, whole);
  const int32_t length = whole_case.segments[0].length;
  for (const int32_t step : {1, 8, 48, 61}) {
    for (int32_t begin = 0; begin < length; begin += step) {
      const int32_t end = std::min(begin + step, length);
      AttentionCase part_case = whole_case;
      part_case.segments = {{-1, length, begin, end}};
      AttentionOperands part(part_case);
      for (int32_t r = begin; r < end; ++r) {
        copy_row(whole.q, r, part.q, r - begin);
        copy_row(whole.dout, r, part.dout, r - begin);
      }
      for (int32_t r = 0; r < end; ++r) {
        copy_row(whole.carry_k, r, part.carry_k, r);
        copy_row(whole.carry_v, r, part.carry_v, r);
      }
      const AttentionResult result = run_attention(*device, part);
      const int64_t cols = whole.q.cols();
      ASSERT_TRUE(same_bits(result.out, rows_of(expected.out, cols, begin, end), cols))
          << begin << " to " << end;
      ASSERT_TRUE(same_bits(result.lse, rows_of(expected.lse, whole_case.heads, begin, end)))
          << begin << " to " << end;
      ASSERT_TRUE(same_bits(result.dq, rows_of(expected.dq, cols, begin, end), cols))
          << begin << " to " << end;
    }
  }
}

// The gradients of keys and values of a sequence alone are those beside others.
TEST_P(AttentionBits, OfASequenceAreThoseBesideOthers) {
  const AttentionCase& alone_case = GetParam();
  AttentionCase packed_case = alone_case;
  packed_case.segments = {{-1, 5}, alone_case.segments[0], {-1, 70}};
  const AttentionOperands alone(alone_case);
  AttentionOperands packed(packed_case);
  const int32_t length = alone_case.segments[0].length;
  const int32_t at = packed.pass.segments[1].carry_begin;
  for (int32_t r = 0; r < length; ++r) {
    copy_row(alone.q, r, packed.q, 5 + r);
    copy_row(alone.dout, r, packed.dout, 5 + r);
    copy_row(alone.carry_k, r, packed.carry_k, at + r);
    copy_row(alone.carry_v, r, packed.carry_v, at + r);
  }
  const auto device = device::make_cpu_device(2);
  const AttentionResult expected = run_attention(*device, alone);
  const AttentionResult result = run_attention(*device, packed);
  const int64_t cols = alone.q.cols();
  const int64_t kv_cols = alone.carry_k.cols();
  EXPECT_TRUE(same_bits(rows_of(result.out, cols, 5, 5 + length), expected.out, cols));
  EXPECT_TRUE(same_bits(rows_of(result.dq, cols, 5, 5 + length), expected.dq, cols));
  EXPECT_TRUE(same_bits(rows_of(result.dk, kv_cols, at, at + length),
                        rows_of(expected.dk, kv_cols, 0, length), kv_cols));
  EXPECT_TRUE(same_bits(rows_of(result.dv, kv_cols, at, at + length),
                        rows_of(expected.dv, kv_cols, 0, length), kv_cols));
}

// A prompt with two answers, and each answer behind a prompt of its own.
TEST_P(AttentionBits, OfAForkAreThoseOfSeparateSequences) {
  AttentionCase shared_case = GetParam();
  const int32_t prompt = shared_case.segments[0].length;
  const int32_t answers[] = {71, 30};
  shared_case.segments = {{-1, prompt}, {0, answers[0]}, {0, answers[1]}};
  const AttentionOperands shared(shared_case);
  const auto device = device::make_cpu_device(2);
  const AttentionResult expected = run_attention(*device, shared);
  for (const int32_t which : {0, 1}) {
    AttentionCase own_case = GetParam();
    own_case.segments = {{-1, prompt + answers[which]}};
    AttentionOperands own(own_case);
    const int32_t first = which == 0 ? prompt : prompt + answers[0];
    const int32_t carry = shared.pass.segments[static_cast<size_t>(which) + 1].carry_begin;
    for (int32_t r = 0; r < prompt + answers[which]; ++r) {
      const int32_t row = r < prompt ? r : first + r - prompt;
      const int32_t key = r < prompt ? r : carry + r - prompt;
      copy_row(shared.q, row, own.q, r);
      copy_row(shared.dout, row, own.dout, r);
      copy_row(shared.carry_k, key, own.carry_k, r);
      copy_row(shared.carry_v, key, own.carry_v, r);
    }
    const AttentionResult result = run_attention(*device, own);
    const int64_t cols = own.q.cols();
    const int64_t kv_cols = own.carry_k.cols();
    const int32_t end = prompt + answers[which];
    const auto same_rows = [&](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
      EXPECT_TRUE(same_bits(rows_of(a, cols, 0, prompt), rows_of(b, cols, 0, prompt), cols))
          << what << " of the prompt";
      EXPECT_TRUE(
          same_bits(rows_of(a, cols, prompt, end), rows_of(b, cols, first, first + answers[which]), cols))
          << what << " of answer " << which;
    };
    same_rows(result.out, expected.out, "out");
    same_rows(result.dq, expected.dq, "dq");
    EXPECT_TRUE(same_bits(rows_of(result.dk, kv_cols, prompt, end),
                          rows_of(expected.dk, kv_cols, carry, carry + answers[which]), kv_cols));
    EXPECT_TRUE(same_bits(rows_of(result.dv, kv_cols, prompt, end),
                          rows_of(expected.dv, kv_cols, carry, carry + answers[which]), kv_cols));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionBits,
    testing::Values(
        AttentionCase{.name = "smollm2", .segments = {{-1, 150}}, .heads = 9, .kv_heads = 3, .head_dim = 64},
        AttentionCase{
            .name = "f16", .segments = {{-1, 131}}, .heads = 4, .head_dim = 40, .carry = DType::F16},
        AttentionCase{.name = "window",
                      .segments = {{-1, 150}},
                      .heads = 2,
                      .kv_heads = 2,
                      .head_dim = 24,
                      .window = 70},
        AttentionCase{.name = "narrow_window",
                      .segments = {{-1, 140}},
                      .heads = 5,
                      .kv_heads = 1,
                      .head_dim = 16,
                      .window = 3,
                      .carry = DType::F16}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace retro::test
