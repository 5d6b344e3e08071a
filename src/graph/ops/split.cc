#include "base/error.h"
#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

namespace {

device::SplitArgs bind_parts(const Bindings& b, ValueId whole, const std::vector<ValueId>& parts, bool join) {
  device::SplitArgs args;
  args.whole = b.at(whole);
  for (size_t i = 0; i < parts.size(); ++i) args.parts[i] = b.at(parts[i]);
  args.join = join;
  return args;
}

}  // namespace

const Rule kSplitRule = {"split", true, nullptr,
                         [](Backward& backward, const Node& node) {
                           if (!backward.wants_gradient(node.in[0])) return;
                           std::vector<ValueId> parts;
                           for (const ValueId part : node.out) {
                             // Else columns of the whole's gradient would stay unwritten.
                             RETRO_CHECK(backward.gradient(part) != kNone);
                             parts.push_back(backward.gradient(part));
                           }
                           const auto [whole, accumulate] = backward.target(node.in[0]);
                           RETRO_CHECK(!accumulate);  // what is split has one reader
                           backward.emit(op::Join{}, parts, {whole});
                         },
                         [](const Node& node, const Bindings& b) -> device::OpArgs {
                           return bind_parts(b, node.in[0], node.out, false);
                         }};

const Rule kJoinRule = {"join", false, nullptr, nullptr,
                        [](const Node& node, const Bindings& b) -> device::OpArgs {
                          return bind_parts(b, node.out[0], node.in, true);
                        }};

}  // namespace retro::graph
