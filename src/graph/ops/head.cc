#include "graph/rules.h"

namespace retro::graph {

// The program places the head itself, between the forward and the backward nodes.
const Rule kHeadRule = {
    "head", false, nullptr, nullptr, [](const Node& node, const Bindings& b) -> device::OpArgs {
      const auto& op = std::get<op::Head>(node.operation);
      device::HeadArgs args{
          b.at(node.in[0]),  op.w,          b.at(node.out[0]), b.at(node.out[1]), b.at(node.out[2]),
          b.at(node.out[3]), op.chunk_rows, op.softcap,        op.fast,           {}};
      if (node.out.size() > 4) args.gathered8 = b.at(node.out[4]);
      return args;
    }};

}  // namespace retro::graph
