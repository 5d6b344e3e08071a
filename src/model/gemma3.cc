// The gemma3 architecture (Gemma 3 technical report, 2025): llama's block with norms of each query and key
// head, norms behind attention and feed-forward, a GELU gate, scaled embeddings, and five sliding-window
// layers (with a rotary base of their own) to each full one.
//
//   n = norm(x, attn_norm);  q, k = rope(norm(attn_q·n, attn_q_norm)), rope(norm(attn_k·n, attn_k_norm))
//   x += norm(attn_output · attention(q, k, attn_v·n), post_attention_norm)
//   n = norm(x, ffn_norm);   x += norm(ffn_down · (gelu(ffn_gate·n) ∘ ffn_up·n), post_ffw_norm)
//
// Files store norm weights with their offset of 1 added; rotary pairs lie half a head apart. Keys of its own:
// `attention.sliding_window`, `attention.sliding_window_pattern` (every so many layers one is full; 6) and
// `rope.freq_base_swa` (10000).
#include <array>
#include <cmath>

#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 13> kBlockTensors = {
    "attn_norm.weight",    "attn_q.weight",      "attn_k.weight",      "attn_v.weight",
    "attn_q_norm.weight",  "attn_k_norm.weight", "attn_output.weight", "post_attention_norm.weight",
    "ffn_norm.weight",     "ffn_gate.weight",    "ffn_up.weight",      "ffn_down.weight",
    "post_ffw_norm.weight"};
constexpr std::array<std::string_view, 3> kKeys = {"attention.sliding_window",
                                                   "attention.sliding_window_pattern", "rope.freq_base_swa"};

constexpr int32_t kLayersOf27B = 62;

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, kGemma3);
  h.rope_style = device::RopeStyle::half;
  h.window = positive(file, "gemma3.attention.sliding_window");
  h.window_pattern = positive(file, "gemma3.attention.sliding_window_pattern", 6);
  h.rope_local.base = rope_base(file, "gemma3.rope.freq_base_swa");
  h.embedding_scale = std::sqrt(static_cast<float>(h.embedding));
  // query_pre_attn_scalar is the head size in every model of the family but the largest.
  const float scalar = h.layers == kLayersOf27B
                           ? static_cast<float>(h.embedding) / static_cast<float>(h.heads)
                           : static_cast<float>(h.head_dim);
  h.attention_scale = 1.0F / std::sqrt(scalar);
  h.activation = device::Activation::gelu_tanh;
  return h;
}

graph::ValueId block(const Block& b, graph::ValueId x) {
  const Hyperparameters& h = b.hyperparameters();
  graph::ValueId n = b.norm(x, "attn_norm");
  const graph::ValueId q = b.norm(b.linear(n, "attn_q", h.q_dim()), "attn_q_norm", h.heads);
  const graph::ValueId k = b.norm(b.linear(n, "attn_k", h.kv_dim()), "attn_k_norm", h.kv_heads);
  const graph::ValueId v = b.linear(n, "attn_v", h.kv_dim());
  const graph::ValueId a = b.linear(b.attention(q, k, v), "attn_output", h.embedding);
  x = b.add(x, b.norm(a, "post_attention_norm"));
  n = b.norm(x, "ffn_norm");
  return b.add(x, b.norm(b.feed_forward(n), "post_ffw_norm"));
}

}  // namespace

const Architecture kGemma3 = {"gemma3", kBlockTensors, {}, kKeys, read, block};

}  // namespace retro::model
