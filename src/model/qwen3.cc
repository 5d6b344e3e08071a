// The qwen3 architecture (Qwen3 technical report, 2025): llama's block with a norm of each query and key
// head.
//
//   n = norm(x, attn_norm);  q, k = rope(norm(attn_q·n, attn_q_norm)), rope(norm(attn_k·n, attn_k_norm))
//   x += attn_output · attention(q, k, attn_v·n)
//   n = norm(x, ffn_norm);   x += ffn_down · (silu(ffn_gate·n) ∘ ffn_up·n)
//
// attn_q_norm and attn_k_norm have the size of a head, which the metadata gives as `attention.key_length`;
// rotary pairs lie half a head apart. The metadata has no keys of its own.
#include <array>
#include <cmath>

#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 11> kBlockTensors = {
    "attn_norm.weight",   "attn_q.weight",      "attn_k.weight",      "attn_v.weight",
    "attn_q_norm.weight", "attn_k_norm.weight", "attn_output.weight", "ffn_norm.weight",
    "ffn_gate.weight",    "ffn_up.weight",      "ffn_down.weight"};

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, kQwen3);
  h.rope_style = device::RopeStyle::half;
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim));
  return h;
}

graph::ValueId block(const Block& b, graph::ValueId x) {
  const Hyperparameters& h = b.hyperparameters();
  graph::ValueId n = b.norm(x, "attn_norm");
  const graph::ValueId q = b.norm(b.linear(n, "attn_q", h.q_dim()), "attn_q_norm", h.heads);
  const graph::ValueId k = b.norm(b.linear(n, "attn_k", h.kv_dim()), "attn_k_norm", h.kv_heads);
  const graph::ValueId v = b.linear(n, "attn_v", h.kv_dim());
  x = b.add(x, b.linear(b.attention(q, k, v), "attn_output", h.embedding));
  n = b.norm(x, "ffn_norm");
  return b.add(x, b.feed_forward(n));
}

}  // namespace

const Architecture kQwen3 = {"qwen3", kBlockTensors, {}, {}, read, block};

}  // namespace retro::model
