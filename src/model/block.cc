#include "model/block.h"

#include <fmt/format.h>

#include "model/model.h"

namespace retro::model {

const Hyperparameters& Block::hyperparameters() const {
  return model_.hyperparameters();
}

std::string Block::name(const char* tensor, const char* kind) const {
  return fmt::format("blk.{}.{}.{}", layer_, tensor, kind);
}

Block::Value Block::linear(Value x, const char* tensor, int64_t rows) const {
  return builder_.linear(x, model_.matrix(name(tensor, "weight"), rows, builder_.cols(x)));
}

Block::Value Block::biased(Value x, const char* tensor, int64_t rows) const {
  const Value y = linear(x, tensor, rows);
  return builder_.add_bias(y, model_.vector(name(tensor, "bias"), rows));
}

Block::Value Block::norm(Value x, const char* tensor, int32_t groups) const {
  const float* weight = model_.vector(name(tensor, "weight"), builder_.cols(x) / groups);
  return builder_.rms_norm(x, weight, hyperparameters().rms_eps, groups);
}

std::vector<Block::Value> Block::split(Value x, const std::vector<int64_t>& widths) const {
  return builder_.split(x, widths);
}

Block::Value Block::attention(Value q, Value k, Value v) const {
  const Hyperparameters& h = hyperparameters();
  const bool slides = h.slides(layer_);
  graph::op::Rope rope;
  rope.cos_sin = rope_(slides ? h.rope_local : h.rope);
  rope.heads = h.heads;
  rope.head_dim = h.head_dim;
  rope.dims = h.rope_dims;
  rope.style = h.rope_style;
  const Value turned_q = builder_.rope(q, rope);
  rope.heads = h.kv_heads;
  const Value turned_k = builder_.rope(k, rope);
  graph::op::Attention attention;
  attention.heads = h.heads;
  attention.kv_heads = h.kv_heads;
  attention.head_dim = h.head_dim;
  attention.scale = h.attention_scale;
  attention.window = slides ? h.window : 0;
  attention.softcap = h.attention_softcap;
  return builder_.attention(turned_q, turned_k, v, attention);
}

Block::Value Block::gated(Value gate, Value up) const {
  return builder_.gated(gate, up, hyperparameters().activation);
}

Block::Value Block::feed_forward(Value x) const {
  const Hyperparameters& h = hyperparameters();
  const Value gate = linear(x, "ffn_gate", h.feed_forward);
  const Value up = linear(x, "ffn_up", h.feed_forward);
  return linear(gated(gate, up), "ffn_down", h.embedding);
}

graph::Graph build_decoder(graph::Builder& builder, const Model& model, const RopeOf& rope,
                           const Architecture& architecture) {
  const Hyperparameters& h = model.hyperparameters();
  const auto embedding = model.matrix("token_embd.weight", h.vocabulary, h.embedding);
  graph::ValueId x = builder.embed(embedding, h.embedding_scale);
  for (int32_t layer = 0; layer < h.layers; ++layer) {
    builder.begin_layer(x);
    x = architecture.block(Block(builder, model, rope, layer), x);
  }
  builder.end_layers(x);
  const auto out = builder.rms_norm(x, model.vector("output_norm.weight", h.embedding), h.rms_eps);
  return builder.finish(out,
                        model.tied() ? embedding : model.matrix("output.weight", h.vocabulary, h.embedding),
                        h.output_softcap);
}

}  // namespace retro::model
