#include "graph/execute.h"

namespace retro::graph {

Executable::Executable(const Program& program, const Plan& plan, std::byte* arena, Bindings bindings) {
  bindings.values.resize(program.values.size());
  for (size_t v = 0; v < program.values.size(); ++v) {
    const Placement& p = plan.placements[v];
    if (p.bytes == 0) continue;
    bindings.values[v] = {arena + p.offset, program.values[v].cols, p.stride, program.values[v].dtype};
  }
  operations_.reserve(program.nodes.size());
  for (const Node& node : program.nodes) operations_.push_back(rule_of(node).bind(node, bindings));
}

void Executable::run(device::Device& device, size_t begin, size_t end, const device::PassArgs& pass) const {
  for (size_t i = begin; i < end; ++i) device.run(operations_[i], pass);
}

}  // namespace retro::graph
