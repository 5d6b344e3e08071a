// A program bound to memory: operations ready to run.
#pragma once

#include <vector>

#include "device/device.h"
#include "graph/plan.h"
#include "graph/rules.h"

namespace retro::graph {

class Executable {
 public:
  Executable() = default;
  /// Resolves every value to `arena` + its offset. `bindings.loras` and `.carries` are given; `.values` is
  /// filled.
  Executable(const Program& program, const Plan& plan, std::byte* arena, Bindings bindings);

  /// Runs the operations [begin, end) on one pass. Allocates nothing.
  void run(device::Device& device, size_t begin, size_t end, const device::PassArgs& pass) const;
  const std::vector<device::OpArgs>& operations() const { return operations_; }

 private:
  std::vector<device::OpArgs> operations_;
};

}  // namespace retro::graph
