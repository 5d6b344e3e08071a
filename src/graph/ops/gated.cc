#include "base/error.h"
#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

const Rule kGatedRule = {"gated", true,
                         [](const Node& node, std::vector<ValueId>& values) {
                           values.insert(values.end(), {node.in[0], node.in[1]});
                         },
                         [](Backward& backward, const Node& node) {
                           const ValueId dout = backward.gradient(node.out[0]);
                           const ValueId gate = backward.value(node.in[0]);
                           const ValueId up = backward.value(node.in[1]);
                           const auto [dgate, add_gate] = backward.target(node.in[0]);
                           const auto [dup, add_up] = backward.target(node.in[1]);
                           RETRO_CHECK(!add_gate && !add_up);  // a gate and its partner have one reader
                           backward.emit(op::GatedBack{std::get<op::Gated>(node.operation).activation},
                                         {gate, up, dout}, {dgate, dup});
                         },
                         [](const Node& node, const Bindings& b) -> device::OpArgs {
                           return device::GatedArgs{b.at(node.in[0]), b.at(node.in[1]), b.at(node.out[0]),
                                                    std::get<op::Gated>(node.operation).activation};
                         }};

const Rule kGatedBackRule = {
    "gated_back", false, nullptr, nullptr, [](const Node& node, const Bindings& b) -> device::OpArgs {
      return device::GatedBackArgs{b.at(node.in[0]),  b.at(node.in[1]),
                                   b.at(node.in[2]),  b.at(node.out[0]),
                                   b.at(node.out[1]), std::get<op::GatedBack>(node.operation).activation};
    }};

}  // namespace retro::graph
