#include "tests/support/attention_case.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/linear_case.h"

namespace retro::test {
namespace {

// Fills the carry rows that some row of the pass sees.
void fill_seen(TestMatrix& carry, const TestPass& pass, const char* name, double scale) {
  const RandomStream stream(3, name);
  for (const auto& keys : pass.seen(0)) {
    for (const int64_t row : keys) {
      if (!std::isnan(carry.get(row, 0))) continue;
      for (int64_t c = 0; c < carry.cols(); ++c) {
        const uint64_t index = static_cast<uint64_t>(row * carry.cols() + c);
        carry.set(row, c, scale * (2 * static_cast<double>(stream.uniform(index)) - 1));
      }
    }
  }
}

}  // namespace

AttentionOperands::AttentionOperands(const AttentionCase& c)
    : spec(c),
      pass(c.segments),
      q(pass.rows(), int64_t{c.heads} * c.head_dim, int64_t{c.heads} * c.head_dim + 7),
      carry_k(pass.carry_size, int64_t{c.kv_heads} * c.head_dim, int64_t{c.kv_heads} * c.head_dim + 3,
              c.carry),
      carry_v(pass.carry_size, int64_t{c.kv_heads} * c.head_dim, int64_t{c.kv_heads} * c.head_dim + 1,
              c.carry),
      dout(pass.rows(), int64_t{c.heads} * c.head_dim, int64_t{c.heads} * c.head_dim + 5) {
  q.fill(RandomStream(3, "q"), 3 * c.score_scale);
  dout.fill(RandomStream(3, "dout"));
  fill_seen(carry_k, pass, "k", 2);
  fill_seen(carry_v, pass, "v", 1);
  if (c.score_offset == 0) return;
  // The first element of a query times that of a key is the offset; scale undoes the kernel's.
  for (int64_t r = 0; r < q.rows(); ++r) {
    for (int32_t h = 0; h < c.heads; ++h) q.set(r, h * c.head_dim, c.score_offset * std::sqrt(c.head_dim));
  }
  for (int64_t r = 0; r < carry_k.rows(); ++r) {
    for (int32_t h = 0; h < c.kv_heads; ++h) {
      if (!std::isnan(carry_k.get(r, 0))) carry_k.set(r, h * c.head_dim, 1);
    }
  }
}

AttentionInput AttentionOperands::reference() const {
  const double scale = static_cast<float>(1 / std::sqrt(spec.head_dim));
  return {{spec.heads, spec.kv_heads, spec.head_dim, scale, spec.softcap},
          q.values(),
          carry_k.values(),
          carry_v.values(),
          pass.seen(spec.window)};
}

device::AttentionArgs AttentionOperands::args(TestMatrix& out, TestMatrix& lse) const {
  const auto scale = static_cast<float>(1 / std::sqrt(spec.head_dim));
  return {q.matrix(),   carry_k.matrix(), carry_v.matrix(), out.matrix(),
          lse.matrix(), spec.heads,       spec.kv_heads,    spec.head_dim,
          scale,        spec.window,      spec.softcap};
}

AttentionResult run_attention(device::Device& device, const AttentionOperands& operands, double start) {
  const int64_t rows = operands.pass.rows();
  const int64_t cols = operands.q.cols();
  TestMatrix out(rows, cols, cols + 2);
  TestMatrix lse(rows, operands.spec.heads, operands.spec.heads + 1);
  TestMatrix delta(rows, operands.spec.heads);
  TestMatrix dq(rows, cols, cols + 3);
  TestMatrix dk(operands.carry_k.rows(), operands.carry_k.cols(), operands.carry_k.cols() + 5);
  TestMatrix dv(operands.carry_k.rows(), operands.carry_k.cols(), operands.carry_k.cols() + 7);
  dk.fill(start);
  dv.fill(start);
  TestMatrix dscores(delta.rows(), delta.cols() * device::AttentionBackArgs::kScoreColumns);
  const device::AttentionArgs forward = operands.args(out, lse);
  const device::PassArgs pass = operands.pass.args();
  device.run(forward, pass);
  device.run(device::AttentionBackArgs{forward, operands.dout.matrix(), dq.matrix(), dk.matrix(), dv.matrix(),
                                       delta.matrix(), dscores.matrix()},
             pass);
  for (const TestMatrix* m : {&out, &lse, &dq, &dk, &dv}) EXPECT_TRUE(m->gaps_untouched());
  return {floats(out), floats(lse), floats(dq), floats(dk), floats(dv)};
}

}  // namespace retro::test
