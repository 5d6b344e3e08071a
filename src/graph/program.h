// A program: the forward nodes of a graph, its head and, for training, its backward nodes, in one order.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/node.h"

namespace retro::graph {

struct ProgramOptions {
  bool backward = true;  // without it, forward and head alone
  int32_t checkpoint_layers =
      0;  // keep the residual stream every so many layers and recompute; 0: keep activations
  DType checkpoint_dtype = DType::F32;
  int64_t head_chunk_rows = 64;
  bool keep_carry_gradients =
      false;  // a set may take several passes: dK and dV of every layer outlive a pass
  /// The products of LinearArgs::fast and HeadArgs::fast, AttentionArgs::fast; only without backward.
  bool fast_activations = false;
};

struct Program {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<LoraShape> loras;
  std::vector<CarryShape> carries;
  size_t carry_end = 0;    // after the last KvStore: what a pass must run to leave its carry
  size_t forward_end = 0;  // after the last forward node
  size_t head_end = 0;     // after the head, which is the node at forward_end
};

/// Differentiates a graph with respect to its low-rank terms.
///
/// What the backward pass reads is kept, unless it follows from kept values by cheap operations (norms, gated
/// activations, rotations), which are then repeated. Gradients that flow only into frozen weights below the
/// lowest trained one are not made. With checkpoints, only the residual stream is kept between segments of
/// layers, and a segment's forward nodes are repeated before its backward nodes: the same kernels on the same
/// numbers, so f32 checkpoints change no bit.
Program make_program(const Graph& graph, const ProgramOptions& options);

}  // namespace retro::graph
