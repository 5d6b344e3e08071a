// Operands of attention over a pass, for kernel and reference alike.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "tests/reference/attention_ref.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {

struct AttentionCase {
  const char* name = "";
  std::vector<SegmentSpec> segments;
  int32_t heads = 1;
  int32_t kv_heads = 1;
  int32_t head_dim = 8;
  int32_t window = 0;
  device::DType carry = device::DType::F32;
  double score_scale = 1;  // of the queries
  float softcap = 0;
  double score_offset = 0;  // every score is about this much higher
};

/// Queries, carry and upstream gradient of a case. What no row of the pass may read of the carry is NaN.
class AttentionOperands {
 public:
  explicit AttentionOperands(const AttentionCase& c);

  /// What the reference takes for it; rows of the carry that nothing sees are NaN there too.
  AttentionInput reference() const;

  device::AttentionArgs args(TestMatrix& out, TestMatrix& lse) const;

  AttentionCase spec;
  TestPass pass;
  TestMatrix q;
  TestMatrix carry_k;
  TestMatrix carry_v;
  TestMatrix dout;
};

struct AttentionResult {
  std::vector<float> out;
  std::vector<float> lse;
  std::vector<float> dq;
  std::vector<float> dk;  // what the pass added onto `start`, or onto zeros
  std::vector<float> dv;
};

/// Both directions; dk and dv begin at `start` in every element.
AttentionResult run_attention(device::Device& device, const AttentionOperands& operands, double start = 0);

}  // namespace retro::test
