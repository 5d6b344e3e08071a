#include "graph/rules.h"

#include <array>

namespace retro::graph {

const Rule& rule_of(const Node& node) {
  // In the order of the variant `Operation`.
  static const std::array<const Rule*, std::variant_size_v<Operation>> kRules = {
      &kEmbedRule,         &kRmsNormRule,    &kRmsNormBackRule,    &kLinearRule,
      &kLinearBackRule,    &kRopeRule,       &kKvStoreRule,        &kAttentionRule,
      &kAttentionBackRule, &kKvLoadGradRule, &kClearCarryGradRule, &kGatedRule,
      &kGatedBackRule,     &kAddRule,        &kCopyRule,           &kHeadRule};
  return *kRules[node.operation.index()];
}

}  // namespace retro::graph
