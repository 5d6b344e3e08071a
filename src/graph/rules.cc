#include "graph/rules.h"

namespace retro::graph {

namespace {

struct RuleOf {
  const Rule& operator()(const op::Embed&) const { return kEmbedRule; }
  const Rule& operator()(const op::RmsNorm&) const { return kRmsNormRule; }
  const Rule& operator()(const op::RmsNormBack&) const { return kRmsNormBackRule; }
  const Rule& operator()(const op::Linear&) const { return kLinearRule; }
  const Rule& operator()(const op::LinearBack&) const { return kLinearBackRule; }
  const Rule& operator()(const op::Rope&) const { return kRopeRule; }
  const Rule& operator()(const op::KvStore&) const { return kKvStoreRule; }
  const Rule& operator()(const op::Attention&) const { return kAttentionRule; }
  const Rule& operator()(const op::AttentionBack&) const { return kAttentionBackRule; }
  const Rule& operator()(const op::KvLoadGrad&) const { return kKvLoadGradRule; }
  const Rule& operator()(const op::ClearCarryGrad&) const { return kClearCarryGradRule; }
  const Rule& operator()(const op::Gated&) const { return kGatedRule; }
  const Rule& operator()(const op::GatedBack&) const { return kGatedBackRule; }
  const Rule& operator()(const op::Add&) const { return kAddRule; }
  const Rule& operator()(const op::AddBias&) const { return kAddBiasRule; }
  const Rule& operator()(const op::Split&) const { return kSplitRule; }
  const Rule& operator()(const op::Join&) const { return kJoinRule; }
  const Rule& operator()(const op::Copy&) const { return kCopyRule; }
  const Rule& operator()(const op::Head&) const { return kHeadRule; }
  const Rule& operator()(const op::Quantize&) const { return kQuantizeRule; }
};

}  // namespace

const Rule& rule_of(const Node& node) {
  return std::visit(RuleOf{}, node.operation);
}

}  // namespace retro::graph
