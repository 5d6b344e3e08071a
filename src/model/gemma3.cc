// The gemma3 architecture (Gemma 3 technical report, 2025): llama's block with norms of each query and key
// head, norms behind attention and feed-forward, a GELU gate, scaled embeddings, and five sliding-window
// layers (with a rotary base of their own) to each full one. Files store norm weights with their offset of 1
// added.
#include <array>
#include <cmath>

#include "base/error.h"
#include "model/architecture.h"
#include "model/model.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 13> kBlockTensors = {
    "attn_norm.weight",    "attn_q.weight",      "attn_k.weight",      "attn_v.weight",
    "attn_q_norm.weight",  "attn_k_norm.weight", "attn_output.weight", "post_attention_norm.weight",
    "ffn_norm.weight",     "ffn_gate.weight",    "ffn_up.weight",      "ffn_down.weight",
    "post_ffw_norm.weight"};

constexpr int32_t kLayersOf27B = 62;

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, "gemma3");
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
  refuse_key(file, "gemma3.final_logit_softcapping", "soft caps are not available in this build");
  return h;
}

graph::Graph build(graph::Builder& b, const Model& model, const RopeOf& rope_of) {
  const Hyperparameters& h = model.hyperparameters();
  const int64_t d = h.embedding;
  const int64_t q_dim = int64_t{h.heads} * h.head_dim;
  const int64_t kv_dim = int64_t{h.kv_heads} * h.head_dim;

  const auto embedding = model.matrix("token_embd.weight", h.vocabulary, d);
  graph::ValueId x = b.embed(embedding, h.embedding_scale);
  for (int32_t layer = 0; layer < h.layers; ++layer) {
    const auto name = [&](const char* tensor) { return fmt::format("blk.{}.{}.weight", layer, tensor); };
    const auto linear = [&](graph::ValueId in, const char* tensor, int64_t rows, int64_t cols) {
      return b.linear(in, model.matrix(name(tensor), rows, cols));
    };
    const auto norm = [&](graph::ValueId in, const char* tensor, int64_t width, int32_t groups = 1) {
      return b.rms_norm(in, model.vector(name(tensor), width), h.rms_eps, groups);
    };
    const bool slides = h.slides(layer);
    const graph::op::Rope rope_q{
        rope_of(slides ? h.rope_local : h.rope), h.heads, h.head_dim, h.rope_dims, h.rope_style, false};
    graph::op::Rope rope_k = rope_q;
    rope_k.heads = h.kv_heads;

    b.begin_layer(x);
    graph::ValueId n = norm(x, "attn_norm", d);
    const graph::ValueId q =
        b.rope(norm(linear(n, "attn_q", q_dim, d), "attn_q_norm", h.head_dim, h.heads), rope_q);
    const graph::ValueId k =
        b.rope(norm(linear(n, "attn_k", kv_dim, d), "attn_k_norm", h.head_dim, h.kv_heads), rope_k);
    const graph::ValueId v = linear(n, "attn_v", kv_dim, d);
    const graph::ValueId a =
        b.attention(q, k, v, {0, h.heads, h.kv_heads, h.head_dim, h.attention_scale, slides ? h.window : 0});
    x = b.add(x, norm(linear(a, "attn_output", d, q_dim), "post_attention_norm", d));

    n = norm(x, "ffn_norm", d);
    const graph::ValueId gate = linear(n, "ffn_gate", h.feed_forward, d);
    const graph::ValueId up = linear(n, "ffn_up", h.feed_forward, d);
    const graph::ValueId down = linear(b.gated(gate, up, h.activation), "ffn_down", d, h.feed_forward);
    x = b.add(x, norm(down, "post_ffw_norm", d));
  }
  b.end_layers(x);
  const graph::ValueId out = b.rms_norm(x, model.vector("output_norm.weight", d), h.rms_eps);
  return b.finish(out, model.tied() ? embedding : model.matrix("output.weight", h.vocabulary, d));
}

}  // namespace

const Architecture kGemma3 = {"gemma3", kBlockTensors, read, build};

}  // namespace retro::model
