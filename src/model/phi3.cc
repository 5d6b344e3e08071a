// The phi3 architecture (Phi-3 technical report, 2024; Phi-4 has it too): llama's block with queries, keys
// and values in one matrix and gate and up in another.
//
//   n = norm(x, attn_norm);  q, k, v = columns of attn_qkv·n;  x += attn_output · attention(rope(q), rope(k),
//   v) n = norm(x, ffn_norm);   gate, up = halves of ffn_up·n;    x += ffn_down · (silu(gate) ∘ up)
//
// An adapter's term lies on the whole matrix. Rotary pairs lie half of the `rope.dimension_count` first
// elements of a head apart. Keys of its own: `attention.sliding_window` (as in llama; 0: none). Long rope
// (Ding et al. 2024): `rope_factors_long.weight` divides the frequencies of runs whose context is longer than
// `rope.scaling.original_context_length`, `rope_factors_short.weight` those of others, and both rotations
// multiply by `rope.scaling.attn_factor`.
#include <array>
#include <cmath>

#include "base/error.h"
#include "model/architecture.h"
#include "model/block.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 6> kBlockTensors = {"attn_norm.weight",   "attn_qkv.weight",
                                                           "attn_output.weight", "ffn_norm.weight",
                                                           "ffn_up.weight",      "ffn_down.weight"};
constexpr std::array<std::string_view, 2> kOtherTensors = {"rope_factors_long.weight",
                                                           "rope_factors_short.weight"};
constexpr std::array<std::string_view, 3> kKeys = {"attention.sliding_window", "rope.scaling.attn_factor",
                                                   "rope.scaling.type"};

void read_long_rope(const gguf::Reader& file, Hyperparameters& h) {
  h.rope.factors = rope_factors(file, "rope_factors_short.weight", h.rope_dims);
  h.rope.long_factors = rope_factors(file, "rope_factors_long.weight", h.rope_dims);
  const bool wanted = file.get_string("phi3.rope.scaling.type", "none") == "longrope" ||
                      h.rope.factors != nullptr || h.rope.long_factors != nullptr;
  if (wanted && (h.rope.factors == nullptr || h.rope.long_factors == nullptr)) {
    fail(ErrorKind::model,
         "long rope needs the tensors 'rope_factors_short.weight' and 'rope_factors_long.weight'; one is "
         "missing");
  }
  h.rope.original_context =
      positive(file, "phi3.rope.scaling.original_context_length", static_cast<uint32_t>(h.context_length));
  h.rope.magnitude = within(file, "phi3.rope.scaling.attn_factor", 0.1F, 10.0F, 1.0F);
}

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, kPhi3);
  h.rope_style = device::RopeStyle::half;
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim));
  h.window = window(file, "phi3.attention.sliding_window");
  read_long_rope(file, h);
  h.rope_local = h.rope;
  return h;
}

graph::ValueId block(const Block& b, graph::ValueId x) {
  const Hyperparameters& h = b.hyperparameters();
  graph::ValueId n = b.norm(x, "attn_norm");
  const graph::ValueId fused = b.linear(n, "attn_qkv", h.q_dim() + 2 * h.kv_dim());
  const auto qkv = b.split(fused, {h.q_dim(), h.kv_dim(), h.kv_dim()});
  x = b.add(x, b.linear(b.attention(qkv[0], qkv[1], qkv[2]), "attn_output", h.embedding));
  n = b.norm(x, "ffn_norm");
  const int64_t half = h.feed_forward;
  const auto halves = b.split(b.linear(n, "ffn_up", 2 * half), {half, half});
  return b.add(x, b.linear(b.gated(halves[0], halves[1]), "ffn_down", h.embedding));
}

}  // namespace

const Architecture kPhi3 = {"phi3", kBlockTensors, kOtherTensors, kKeys, read, block};

}  // namespace retro::model
