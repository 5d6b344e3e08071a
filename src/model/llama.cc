// The llama architecture (Touvron et al. 2023): x += Wo·attention(rope(Wq·n), rope(Wk·n), Wv·n), n = norm(x);
// x += Wdown·(silu(Wgate·n) ∘ Wup·n), n = norm(x). Its files store the rows of Wq and Wk so that rotary pairs
// are neighbours.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "model/architecture.h"
#include "model/model.h"

namespace retro::model {

namespace {

constexpr std::array<std::string_view, 9> kBlockTensors = {
    "attn_norm.weight", "attn_q.weight",   "attn_k.weight", "attn_v.weight",  "attn_output.weight",
    "ffn_norm.weight",  "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};

Hyperparameters read(const gguf::Reader& file) {
  Hyperparameters h = read_common(file, "llama");
  if (file.get_u32("llama.expert_count", 0) > 0) {
    refuse_key(file, "llama.expert_count", "mixtures of experts are not available in this build");
  }
  refuse_key(file, "llama.attention.sliding_window",
             "sliding windows in llama files are not available in this build");
  h.rope_style = device::RopeStyle::interleaved;
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim));
  if (const gguf::Tensor* factors = file.find_tensor("rope_freqs.weight")) {
    if (factors->dtype != tensor::DType::F32 || factors->elements() != h.rope_dims / 2) {
      fail(ErrorKind::model, "tensor 'rope_freqs.weight': must be {} F32 numbers, one a rotary pair",
           h.rope_dims / 2);
    }
    h.rope.factors = reinterpret_cast<const float*>(factors->data);
    const auto usable = [](float factor) { return factor > 0 && std::isfinite(factor); };
    if (!std::all_of(h.rope.factors, h.rope.factors + h.rope_dims / 2, usable)) {
      fail(ErrorKind::model, "tensor 'rope_freqs.weight': every factor must be above 0 and finite");
    }
  }
  return h;
}

graph::Graph build(graph::Builder& b, const Model& model, const RopeOf& rope_of) {
  const Hyperparameters& h = model.hyperparameters();
  const int64_t d = h.embedding;
  const int64_t q_dim = int64_t{h.heads} * h.head_dim;
  const int64_t kv_dim = int64_t{h.kv_heads} * h.head_dim;
  const graph::op::Rope rope{rope_of(h.rope), h.heads, h.head_dim, h.rope_dims, h.rope_style, false};
  graph::op::Rope rope_k = rope;
  rope_k.heads = h.kv_heads;

  const auto embedding = model.matrix("token_embd.weight", h.vocabulary, d);
  graph::ValueId x = b.embed(embedding, h.embedding_scale);
  for (int32_t layer = 0; layer < h.layers; ++layer) {
    const auto name = [&](const char* tensor) { return fmt::format("blk.{}.{}.weight", layer, tensor); };
    const auto matrix = [&](const char* tensor, int64_t rows, int64_t cols) {
      return model.matrix(name(tensor), rows, cols);
    };
    b.begin_layer(x);
    graph::ValueId n = b.rms_norm(x, model.vector(name("attn_norm"), d), h.rms_eps);
    const graph::ValueId q = b.rope(b.linear(n, matrix("attn_q", q_dim, d)), rope);
    const graph::ValueId k = b.rope(b.linear(n, matrix("attn_k", kv_dim, d)), rope_k);
    const graph::ValueId v = b.linear(n, matrix("attn_v", kv_dim, d));
    const graph::ValueId a = b.attention(q, k, v, {0, h.heads, h.kv_heads, h.head_dim, h.attention_scale, 0});
    x = b.add(x, b.linear(a, matrix("attn_output", d, q_dim)));

    n = b.rms_norm(x, model.vector(name("ffn_norm"), d), h.rms_eps);
    const graph::ValueId gate = b.linear(n, matrix("ffn_gate", h.feed_forward, d));
    const graph::ValueId up = b.linear(n, matrix("ffn_up", h.feed_forward, d));
    const graph::ValueId down =
        b.linear(b.gated(gate, up, h.activation), matrix("ffn_down", d, h.feed_forward));
    x = b.add(x, down);
  }
  b.end_layers(x);
  const graph::ValueId out = b.rms_norm(x, model.vector("output_norm.weight", d), h.rms_eps);
  return b.finish(out, model.tied() ? embedding : model.matrix("output.weight", h.vocabulary, d));
}

}  // namespace

const Architecture kLlama = {"llama", kBlockTensors, read, build};

}  // namespace retro::model
