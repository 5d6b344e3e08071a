// The gemma2 architecture (Gemma 2 technical report, 2024): llama's block with norms behind attention and
// feed-forward, a GELU gate, scaled embeddings, soft caps c·tanh(x/c) on attention scores and on logits, and
// sliding windows in every other layer, the first of them.
//
//   n = norm(x, attn_norm);  q, k = rope(attn_q·n), rope(attn_k·n)
//   x += norm(attn_output · attention(q, k, attn_v·n), post_attention_norm)
//   n = norm(x, ffn_norm);   x += norm(ffn_down · (gelu(ffn_gate·n) ∘ ffn_up·n), post_ffw_norm)
//
// Files store norm weights with their offset of 1 added; rotary pairs lie half a head apart. Keys of its own:
// `attention.sliding_window` (4096), `attn_logit_softcapping` (50), `final_logit_softcapping` (30); a cap of
// 0 is none.
#include <array>
#include <cmath>

#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 11> kBlockTensors = {
    "attn_norm.weight",           "attn_q.weight",   "attn_k.weight",   "attn_v.weight", "attn_output.weight",
    "post_attention_norm.weight", "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight",
    "post_ffw_norm.weight"};
constexpr std::array<std::string_view, 3> kKeys = {"attention.sliding_window", "attn_logit_softcapping",
                                                   "final_logit_softcapping"};

constexpr int32_t kLayersOf27B = 46;

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, kGemma2);
  h.rope_style = device::RopeStyle::half;
  h.window = positive(file, "gemma2.attention.sliding_window", 4096);
  h.window_pattern = 2;
  h.rope_local = h.rope;
  h.embedding_scale = std::sqrt(static_cast<float>(h.embedding));
  // query_pre_attn_scalar is the head size in every model of the family but the largest.
  const float scalar = h.layers == kLayersOf27B
                           ? static_cast<float>(h.embedding) / static_cast<float>(h.heads)
                           : static_cast<float>(h.head_dim);
  h.attention_scale = 1.0F / std::sqrt(scalar);
  h.attention_softcap = within(file, "gemma2.attn_logit_softcapping", 0, 1e6F, 50.0F);
  h.output_softcap = within(file, "gemma2.final_logit_softcapping", 0, 1e6F, 30.0F);
  h.activation = device::Activation::gelu_tanh;
  return h;
}

graph::ValueId block(const Block& b, graph::ValueId x) {
  const Hyperparameters& h = b.hyperparameters();
  graph::ValueId n = b.norm(x, "attn_norm");
  const graph::ValueId q = b.linear(n, "attn_q", h.q_dim());
  const graph::ValueId k = b.linear(n, "attn_k", h.kv_dim());
  const graph::ValueId v = b.linear(n, "attn_v", h.kv_dim());
  const graph::ValueId a = b.linear(b.attention(q, k, v), "attn_output", h.embedding);
  x = b.add(x, b.norm(a, "post_attention_norm"));
  n = b.norm(x, "ffn_norm");
  return b.add(x, b.norm(b.feed_forward(n), "post_ffw_norm"));
}

}  // namespace

const Architecture kGemma2 = {"gemma2", kBlockTensors, {}, kKeys, read, block};

}  // namespace retro::model
