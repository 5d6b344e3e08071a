// The graph: values (matrices of pass rows), and few, coarse nodes that read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "device/op_args.h"

namespace retro::graph {

using tensor::DType;
using tensor::row_bytes;

using ValueId = int32_t;
constexpr ValueId kNone = -1;

/// A matrix with the rows of the pass (or `rows` fixed ones) that lives in the plan's arena.
struct Value {
  std::string name;
  int64_t cols = 0;
  int64_t rows = 0;  // 0: as many as the pass has
  DType dtype = DType::F32;
};

/// Operations; what each computes is said in device/op_args.h. Comments give the values in Node::in →
/// Node::out.
namespace op {

struct Embed {  // → x
  device::Weight table;
  float scale = 1;
};
struct RmsNorm {  // x → y
  const float* weight = nullptr;
  int32_t groups = 1;
  float eps = 0;
};
struct RmsNormBack {  // x, dy [, dx where it accumulates] → dx
  RmsNorm forward;
  bool accumulate = false;
};
/// `lora` numbers the low-rank term among the adapter's targets; -1 without one.
struct Linear {  // x [, x8 where it is fast and w has blocks] → y or kNone [, u]
  device::Weight w;
  int32_t lora = -1;
  bool fast = false;
};
struct Quantize {  // x → x8
};
struct LinearBack {  // dy [, x, u] [, dx where it accumulates] → dx or kNone [, du]
  Linear forward;
  bool accumulate = false;
};
struct Rope {  // x → y
  const float* cos_sin = nullptr;
  int32_t heads = 1;
  int32_t head_dim = 0;
  int32_t dims = 0;
  device::RopeStyle style = device::RopeStyle::interleaved;
  bool inverse = false;
};
struct KvStore {  // k, v →
  int32_t carry = 0;
};
struct Attention {  // q → out, lse
  int32_t carry = 0;
  int32_t heads = 1;
  int32_t kv_heads = 1;
  int32_t head_dim = 0;
  float scale = 1;
  int32_t window = 0;
  float softcap = 0;
  bool fast = false;
};
struct AttentionBack {  // q, out, lse, dout → dq, delta
  Attention forward;
};
struct KvLoadGrad {  // → dk, dv
  int32_t carry = 0;
};
/// Clears the gradients of a carry that is not kept between passes.
struct ClearCarryGrad {  // →
  int32_t carry = 0;
};
struct Gated {  // gate, up → out
  device::Activation activation = device::Activation::silu;
};
struct GatedBack {  // gate, up, dout → dgate, dup
  device::Activation activation = device::Activation::silu;
};
struct Add {  // a, b → out
};
struct AddBias {  // x → y
  const float* bias = nullptr;
};
struct Split {  // whole → parts
  static constexpr size_t kMost = device::SplitArgs::kMost;
};
struct Join {  // parts → whole
};
struct Copy {  // from → to
};
struct Head {  // h → dh or kNone, gathered, dgathered, logits [, gathered8 where it is fast and w has blocks]
  device::Weight w;
  int32_t chunk_rows = 1;
  float softcap = 0;
  bool fast = false;
};

}  // namespace op

using Operation =
    std::variant<op::Embed, op::RmsNorm, op::RmsNormBack, op::Linear, op::LinearBack, op::Rope, op::KvStore,
                 op::Attention, op::AttentionBack, op::KvLoadGrad, op::ClearCarryGrad, op::Gated,
                 op::GatedBack, op::Add, op::AddBias, op::Split, op::Join, op::Copy, op::Head, op::Quantize>;

struct Node {
  Operation operation;
  std::vector<ValueId> in;
  std::vector<ValueId> out;
};

/// A low-rank term's shape: A [rank, in], B transposed [rank, out].
struct LoraShape {
  std::string name;  // of the base tensor, as "blk.0.attn_q.weight"
  int32_t rank = 0;
  int64_t in = 0;
  int64_t out = 0;
};

/// Where an attention's keys and values are kept: rows of `cols` elements each.
struct CarryShape {
  int64_t cols = 0;
};

/// The forward computation, in order of execution. Between two layers only the residual stream is alive.
struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<LoraShape> loras;
  std::vector<CarryShape> carries;
  std::vector<size_t> layer_begin;   // node where each layer starts; one more entry for the end of the last
  std::vector<ValueId> layer_input;  // the residual stream there; the last entry is the last layer's output
  ValueId output = kNone;            // hidden rows that enter the head
  device::Weight head;
  float head_softcap = 0;  // of the logits; 0: none

  ValueId add_value(std::string name, int64_t cols, DType dtype = DType::F32, int64_t rows = 0) {
    values.push_back({std::move(name), cols, rows, dtype});
    return static_cast<ValueId>(values.size()) - 1;
  }
};

}  // namespace retro::graph
