// What the blocks of decoders have in common, so that an architecture's file says only what is its own.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/builder.h"
#include "model/architecture.h"
#include "model/hyperparameters.h"

namespace retro::model {

class Model;

/// Emits the nodes of layer N. Tensors are named without "blk.N." and ".weight": "attn_q" is
/// "blk.N.attn_q.weight". A tensor that is absent or has another shape is an Error(model) naming it.
class Block {
 public:
  using Value = graph::ValueId;

  Block(graph::Builder& builder, const Model& model, const RopeOf& rope, int32_t layer)
      : builder_(builder), model_(model), rope_(rope), layer_(layer) {}

  const Hyperparameters& hyperparameters() const;

  /// W·x, W [rows, cols of x], with the adapter's term where it has one.
  Value linear(Value x, const char* tensor, int64_t rows) const;
  /// W·x + b, b = "blk.N.TENSOR.bias" [rows].
  Value biased(Value x, const char* tensor, int64_t rows) const;
  /// RMS norm of each of `groups` equal parts of x; the weight has a part's size.
  Value norm(Value x, const char* tensor, int32_t groups = 1) const;
  /// Consecutive columns of x, as many as `widths` says; they add up to those of x.
  std::vector<Value> split(Value x, const std::vector<int64_t>& widths) const;
  Value add(Value a, Value b) const { return builder_.add(a, b); }
  /// softmax(scale · rope(q)·rope(k)ᵀ)·v of each head, with the window and the rotation of this layer.
  Value attention(Value q, Value k, Value v) const;
  /// activation(gate) ∘ up.
  Value gated(Value gate, Value up) const;
  /// ffn_down·(activation(ffn_gate·x) ∘ ffn_up·x).
  Value feed_forward(Value x) const;

 private:
  std::string name(const char* tensor, const char* kind) const;

  graph::Builder& builder_;
  const Model& model_;
  const RopeOf& rope_;
  int32_t layer_;
};

/// The decoder around the blocks: embedding (scaled), the architecture's block for every layer on the
/// residual stream, output_norm, and the head with output.weight or, without it, the embedding.
graph::Graph build_decoder(graph::Builder& builder, const Model& model, const RopeOf& rope,
                           const Architecture& architecture);

}  // namespace retro::model
