#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

// A rotation: its gradient is the rotation back, and needs no forward value.
const Rule kRopeRule = {"rope", true, nullptr,
                        [](Backward& backward, const Node& node) {
                          op::Rope inverse = std::get<op::Rope>(node.operation);
                          inverse.inverse = !inverse.inverse;
                          const ValueId dy = backward.gradient(node.out[0]);
                          const auto [dx, accumulate] = backward.target(node.in[0]);
                          if (!accumulate) {
                            backward.emit(inverse, {dy}, {dx});
                            return;
                          }
                          const ValueId rotated = backward.scratch("d.rope", backward.cols(dx));
                          backward.emit(inverse, {dy}, {rotated});
                          backward.emit(op::Add{}, {dx, rotated}, {dx});
                        },
                        [](const Node& node, const Bindings& b) -> device::OpArgs {
                          const auto& op = std::get<op::Rope>(node.operation);
                          return device::RopeArgs{b.at(node.in[0]), b.at(node.out[0]), op.cos_sin,
                                                  op.heads,         op.head_dim,       op.dims,
                                                  op.style,         op.inverse};
                        }};

}  // namespace retro::graph
