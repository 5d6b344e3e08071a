#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

const Rule kRmsNormRule = {
    "rms_norm", true, [](const Node& node, std::vector<ValueId>& values) { values.push_back(node.in[0]); },
    [](Backward& backward, const Node& node) {
      const ValueId x = node.in[0];
      if (!backward.wants_gradient(x)) return;
      const ValueId value = backward.value(x);
      const auto [dx, accumulate] = backward.target(x);
      std::vector<ValueId> in = {value, backward.gradient(node.out[0])};
      if (accumulate) in.push_back(dx);
      backward.emit(op::RmsNormBack{std::get<op::RmsNorm>(node.operation), accumulate}, in, {dx});
    },
    [](const Node& node, const Bindings& b) -> device::OpArgs {
      const auto& op = std::get<op::RmsNorm>(node.operation);
      return device::RmsNormArgs{b.at(node.in[0]), op.weight, b.at(node.out[0]), op.groups, op.eps};
    }};

const Rule kRmsNormBackRule = {
    "rms_norm_back", false, nullptr, nullptr, [](const Node& node, const Bindings& b) -> device::OpArgs {
      const auto& op = std::get<op::RmsNormBack>(node.operation);
      return device::RmsNormBackArgs{b.at(node.in[0]),  op.forward.weight, b.at(node.in[1]),
                                     b.at(node.out[0]), op.forward.groups, op.forward.eps,
                                     op.accumulate};
    }};

}  // namespace retro::graph
