// The qwen2 architecture (Qwen2 technical report, 2024; Qwen 2.5 has it too): llama's block with biases on
// queries, keys and values.
//
//   n = norm(x, attn_norm);  x += attn_output · attention(rope(attn_q·n + b_q), rope(attn_k·n + b_k),
//   attn_v·n + b_v) n = norm(x, ffn_norm);   x += ffn_down · (silu(ffn_gate·n) ∘ ffn_up·n)
//
// Biases are `attn_q.bias`, `attn_k.bias`, `attn_v.bias`; rotary pairs lie half a head apart. The metadata
// has no keys of its own.
#include <array>
#include <cmath>

#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 12> kBlockTensors = {
    "attn_norm.weight", "attn_q.weight",   "attn_q.bias",   "attn_k.weight",
    "attn_k.bias",      "attn_v.weight",   "attn_v.bias",   "attn_output.weight",
    "ffn_norm.weight",  "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, kQwen2);
  h.rope_style = device::RopeStyle::half;
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim));
  return h;
}

graph::ValueId block(const Block& b, graph::ValueId x) {
  const Hyperparameters& h = b.hyperparameters();
  graph::ValueId n = b.norm(x, "attn_norm");
  const graph::ValueId q = b.biased(n, "attn_q", h.q_dim());
  const graph::ValueId k = b.biased(n, "attn_k", h.kv_dim());
  const graph::ValueId v = b.biased(n, "attn_v", h.kv_dim());
  x = b.add(x, b.linear(b.attention(q, k, v), "attn_output", h.embedding));
  n = b.norm(x, "ffn_norm");
  return b.add(x, b.feed_forward(n));
}

}  // namespace

const Architecture kQwen2 = {"qwen2", kBlockTensors, {}, {}, read, block};

}  // namespace retro::model
