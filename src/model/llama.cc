// The llama architecture (Touvron et al. 2023), which mistral's files have too:
//
//   n = norm(x, attn_norm);  x += attn_output · attention(rope(attn_q·n), rope(attn_k·n), attn_v·n)
//   n = norm(x, ffn_norm);   x += ffn_down · (silu(ffn_gate·n) ∘ ffn_up·n)
//
// Files store the rows of attn_q and attn_k so that rotary pairs are neighbours. Keys of its own:
// `attention.sliding_window`: every layer attends to so many keys, the own one included (0 or absent: to all;
// Jiang et al. 2023). `rope_freqs.weight` divides the rotation's frequencies (Llama 3.1).
#include <array>
#include <cmath>

#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 9> kBlockTensors = {
    "attn_norm.weight", "attn_q.weight",   "attn_k.weight", "attn_v.weight",  "attn_output.weight",
    "ffn_norm.weight",  "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};
constexpr std::array<std::string_view, 1> kOtherTensors = {"rope_freqs.weight"};
constexpr std::array<std::string_view, 1> kKeys = {"attention.sliding_window"};

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, kLlama);
  h.rope_style = device::RopeStyle::interleaved;
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim));
  h.window = window(file, "llama.attention.sliding_window");
  h.rope.factors = rope_factors(file, "rope_freqs.weight", h.rope_dims);
  h.rope_local = h.rope;
  return h;
}

graph::ValueId block(const Block& b, graph::ValueId x) {
  const Hyperparameters& h = b.hyperparameters();
  graph::ValueId n = b.norm(x, "attn_norm");
  const graph::ValueId q = b.linear(n, "attn_q", h.q_dim());
  const graph::ValueId k = b.linear(n, "attn_k", h.kv_dim());
  const graph::ValueId v = b.linear(n, "attn_v", h.kv_dim());
  x = b.add(x, b.linear(b.attention(q, k, v), "attn_output", h.embedding));
  n = b.norm(x, "ffn_norm");
  return b.add(x, b.feed_forward(n));
}

}  // namespace

const Architecture kLlama = {"llama", kBlockTensors, kOtherTensors, kKeys, read, block};

}  // namespace retro::model
