// What the graph knows of each operation: one row an operation, in ops/NAME.cc.
#pragma once

#include <span>
#include <vector>

#include "graph/node.h"

namespace retro::graph {

class Backward;

/// Device addresses of a low-rank term and its gradients.
struct LoraBuffers {
  device::Lora lora;
  float* da = nullptr;
  float* dbt = nullptr;
};

struct CarryBuffers {
  device::Matrix k;
  device::Matrix v;
  device::Matrix dk;  // f32; data is null where no gradient is wanted
  device::Matrix dv;
};

/// Resolves a node's values to addresses.
struct Bindings {
  std::vector<device::Matrix> values;
  std::vector<LoraBuffers> loras;
  std::vector<CarryBuffers> carries;
  int64_t carry_rows = 0;

  device::Matrix at(ValueId v) const {
    return v == kNone ? device::Matrix{} : values[static_cast<size_t>(v)];
  }
};

struct Rule {
  const char* name;
  bool cheap = false;  // repeating it costs little beside a matrix product
  /// Forward values that the gradient rule reads, given that a gradient is wanted.
  void (*needs)(const Node& node, std::vector<ValueId>& values) = nullptr;
  void (*gradient)(Backward& backward, const Node& node) = nullptr;
  device::OpArgs (*bind)(const Node& node, const Bindings& bindings) = nullptr;
};

const Rule& rule_of(const Node& node);

extern const Rule kEmbedRule, kRmsNormRule, kRmsNormBackRule, kLinearRule, kLinearBackRule, kRopeRule,
    kKvStoreRule, kAttentionRule, kAttentionBackRule, kKvLoadGradRule, kClearCarryGradRule, kGatedRule,
    kGatedBackRule, kAddRule, kAddBiasRule, kSplitRule, kJoinRule, kCopyRule, kHeadRule, kQuantizeRule;

}  // namespace retro::graph
