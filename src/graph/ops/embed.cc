#include "graph/rules.h"

namespace retro::graph {

// Rows of a table: repeated rather than kept. The input embedding is never trained, so it has no gradient.
const Rule kEmbedRule = {"embed", true, nullptr, nullptr,
                         [](const Node& node, const Bindings& b) -> device::OpArgs {
                           const auto& op = std::get<op::Embed>(node.operation);
                           return device::EmbedArgs{op.table, b.at(node.out[0]), op.scale};
                         }};

}  // namespace retro::graph
