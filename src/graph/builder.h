// Builds a forward graph; an architecture is a function that calls it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/node.h"

namespace retro::graph {

/// A frozen weight and its file name, by which an adapter's targets are chosen.
struct NamedWeight {
  std::string name;
  device::Weight weight;
};

/// The rank of the low-rank term of a tensor, 0 for none.
using RankOf = std::function<int32_t(const std::string& tensor)>;

class Builder {
 public:
  explicit Builder(RankOf rank_of) : rank_of_(std::move(rank_of)) {}

  ValueId embed(const NamedWeight& table, float scale);
  ValueId rms_norm(ValueId x, const float* weight, float eps, int32_t groups = 1);
  /// x·Wᵀ, with the adapter's term where rank_of(name) > 0.
  ValueId linear(ValueId x, const NamedWeight& w);
  ValueId rope(ValueId x, const op::Rope& rope);
  /// Stores k and v in a new carry and attends from q; `attention.carry` is set here.
  ValueId attention(ValueId q, ValueId k, ValueId v, op::Attention attention);
  ValueId gated(ValueId gate, ValueId up, device::Activation activation);
  ValueId add(ValueId a, ValueId b);
  /// x + bias in every row; `bias` has as many elements as x columns.
  ValueId add_bias(ValueId x, const float* bias);
  /// Consecutive columns of x, at most op::Split::kMost parts; the widths add up to the columns of x.
  std::vector<ValueId> split(ValueId x, const std::vector<int64_t>& widths);

  int64_t cols(ValueId v) const { return graph_.values[static_cast<size_t>(v)].cols; }

  /// Marks that a layer starts here with the residual stream `x`.
  void begin_layer(ValueId x);
  /// Closes the last layer, whose output is `x`.
  void end_layers(ValueId x);
  /// `h` enters the head, whose logits are capped where `softcap` is not 0; the graph is complete.
  Graph finish(ValueId h, const NamedWeight& head, float softcap = 0);

 private:
  ValueId emit(const Operation& operation, std::vector<ValueId> in, const std::string& name, int64_t cols);

  RankOf rank_of_;
  Graph graph_;
};

}  // namespace retro::graph
