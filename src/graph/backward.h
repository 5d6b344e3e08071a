// The state of a differentiation, as gradient rules see it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/node.h"
#include "graph/program.h"

namespace retro::graph {

/// Emits backward nodes in the reverse order of the forward ones.
class Backward {
 public:
  /// `checkpoints[layer]` is the stored form of a layer's input, or kNone where the input itself is kept.
  Backward(const Graph& graph, const ProgramOptions& options, Program& program,
           std::vector<ValueId> checkpoints, ValueId output_gradient);

  /// Differentiates the whole graph, from the gradient of its output down.
  void run();

  // For gradient rules:

  /// The forward value `v`, kept or recomputed.
  ValueId value(ValueId v);
  /// The gradient of `v`, complete; kNone when none flows into it.
  ValueId gradient(ValueId v) const { return gradients_[static_cast<size_t>(v)]; }
  bool wants_gradient(ValueId v) const { return wants_[static_cast<size_t>(v)]; }
  /// Where a contribution to the gradient of `v` goes, and whether it is added to what is there.
  std::pair<ValueId, bool> target(ValueId v);
  /// The gradient of `x` starts as the gradient of `y`, in the same memory.
  void share_gradient(ValueId x, ValueId y);
  ValueId scratch(const std::string& name, int64_t cols);
  void emit(const Operation& operation, std::vector<ValueId> in, std::vector<ValueId> out);
  int64_t cols(ValueId v) const { return program_.values[static_cast<size_t>(v)].cols; }
  bool keeps_carry_gradients() const { return options_.keep_carry_gradients; }
  const Graph& graph() const { return graph_; }
  /// The node that writes `v`.
  size_t producer(ValueId v) const { return producer_[static_cast<size_t>(v)]; }

 private:
  void find_wanted();
  void find_kept();
  bool follows_from_kept(ValueId v, const std::vector<bool>& kept) const;
  void repeat_segment(size_t first_layer, size_t end_layer);
  void run_segment(size_t begin, size_t end);
  /// Computes a node again; `low_rank_only`: of a linear one its u alone.
  void repeat(size_t node, bool low_rank_only = false);

  const Graph& graph_;
  const ProgramOptions& options_;
  Program& program_;
  std::vector<ValueId> checkpoints_;
  std::vector<size_t> producer_;
  std::vector<bool> wants_;
  std::vector<bool> kept_;
  std::vector<ValueId> current_;    // by forward value: where its number can be read now
  std::vector<ValueId> gradients_;  // by forward value
};

}  // namespace retro::graph
