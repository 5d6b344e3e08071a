#include <tuple>

#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

const Rule kLinearRule = {"linear", false,
                          [](const Node& node, std::vector<ValueId>& values) {
                            if (std::get<op::Linear>(node.operation).lora >= 0) {
                              values.push_back(node.in[0]);
                              values.push_back(node.out[1]);
                            }
                          },
                          [](Backward& backward, const Node& node) {
                            const auto& op = std::get<op::Linear>(node.operation);
                            const ValueId x = node.in[0];
                            const bool wanted = backward.wants_gradient(x);
                            std::vector<ValueId> in = {backward.gradient(node.out[0])};
                            std::vector<ValueId> out = {kNone};
                            if (op.lora >= 0) {
                              in.push_back(backward.value(x));
                              in.push_back(backward.value(node.out[1]));
                              out.push_back(backward.scratch("d.u", backward.cols(node.out[1])));
                            }
                            bool accumulate = false;
                            if (wanted) {
                              std::tie(out[0], accumulate) = backward.target(x);
                              if (accumulate) in.push_back(out[0]);
                            }
                            backward.emit(op::LinearBack{op, accumulate}, std::move(in), std::move(out));
                          },
                          [](const Node& node, const Bindings& b) -> device::OpArgs {
                            const auto& op = std::get<op::Linear>(node.operation);
                            device::LinearArgs args{b.at(node.in[0]), op.w, b.at(node.out[0]), {}, {},
                                                    op.fast,          {}};
                            if (node.in.size() > 1) args.x8 = b.at(node.in[1]);
                            if (op.lora >= 0) {
                              args.lora = b.loras[static_cast<size_t>(op.lora)].lora;
                              args.u = b.at(node.out[1]);
                            }
                            return args;
                          }};

const Rule kLinearBackRule = {"linear_back", false, nullptr, nullptr,
                              [](const Node& node, const Bindings& b) -> device::OpArgs {
                                const auto& op = std::get<op::LinearBack>(node.operation);
                                device::LinearBackArgs args;
                                args.dy = b.at(node.in[0]);
                                args.w = op.forward.w;
                                args.dx = b.at(node.out[0]);
                                args.accumulate = op.accumulate;
                                if (op.forward.lora >= 0) {
                                  const LoraBuffers& lora = b.loras[static_cast<size_t>(op.forward.lora)];
                                  args.lora = lora.lora;
                                  args.x = b.at(node.in[1]);
                                  args.u = b.at(node.in[2]);
                                  args.du = b.at(node.out[1]);
                                  args.da = lora.da;
                                  args.dbt = lora.dbt;
                                }
                                return args;
                              }};

// Only what samples has it, so it has no gradient.
const Rule kQuantizeRule = {"quantize", false, nullptr, nullptr,
                            [](const Node& node, const Bindings& b) -> device::OpArgs {
                              return device::QuantizeArgs{b.at(node.in[0]), b.at(node.out[0])};
                            }};

}  // namespace retro::graph
