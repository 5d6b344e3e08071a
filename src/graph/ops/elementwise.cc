#include <algorithm>

#include "base/error.h"
#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

namespace {

// dy becomes the gradient of both summands in one memory; later contributions to `a` are added there. That is
// right only if all that reads dy as the gradient of `b` runs before them: b must come from below every other
// reader of `a`, as a branch off the residual stream does.
bool may_share(const Backward& backward, ValueId a, ValueId b, const Node& add) {
  const size_t from = backward.producer(b);
  const auto& nodes = backward.graph().nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool reads = std::find(nodes[i].in.begin(), nodes[i].in.end(), a) != nodes[i].in.end();
    if (reads && nodes[i].out != add.out && i >= from) return false;
  }
  return true;
}

}  // namespace

const Rule kAddRule = {"add", false, nullptr,
                       [](Backward& backward, const Node& node) {
                         const ValueId dy = backward.gradient(node.out[0]);
                         RETRO_CHECK(node.in[0] != node.in[1]);
                         for (const ValueId x : node.in) {
                           if (!backward.wants_gradient(x)) continue;
                           const ValueId other = x == node.in[0] ? node.in[1] : node.in[0];
                           if (backward.gradient(x) == kNone && may_share(backward, x, other, node)) {
                             backward.share_gradient(x, node.out[0]);
                             continue;
                           }
                           const auto [dx, accumulate] = backward.target(x);
                           if (accumulate) {
                             backward.emit(op::Add{}, {dx, dy}, {dx});
                           } else {
                             backward.emit(op::Copy{}, {dy}, {dx});
                           }
                         }
                       },
                       [](const Node& node, const Bindings& b) -> device::OpArgs {
                         return device::AddArgs{b.at(node.in[0]), b.at(node.in[1]), b.at(node.out[0])};
                       }};

// The bias is frozen: the gradient of x is that of y, in its memory.
const Rule kAddBiasRule = {"add_bias", true, nullptr,
                           [](Backward& backward, const Node& node) {
                             const ValueId x = node.in[0];
                             if (!backward.wants_gradient(x)) return;
                             RETRO_CHECK(backward.gradient(x) == kNone);  // what is biased has one reader
                             backward.share_gradient(x, node.out[0]);
                           },
                           [](const Node& node, const Bindings& b) -> device::OpArgs {
                             const device::Matrix x = b.at(node.in[0]);
                             // One row for all: never written, though a matrix could be.
                             auto* bias = const_cast<float*>(std::get<op::AddBias>(node.operation).bias);
                             return device::AddArgs{x, {bias, x.cols, 0}, b.at(node.out[0])};
                           }};

const Rule kCopyRule = {"copy", false, nullptr, nullptr,
                        [](const Node& node, const Bindings& b) -> device::OpArgs {
                          return device::CopyArgs{b.at(node.in[0]), b.at(node.out[0])};
                        }};

}  // namespace retro::graph
