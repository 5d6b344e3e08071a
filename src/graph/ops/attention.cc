#include "base/error.h"
#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

namespace {

device::AttentionArgs forward_args(const op::Attention& op, const Bindings& b, ValueId q, ValueId out,
                                   ValueId lse) {
  const CarryBuffers& carry = b.carries[static_cast<size_t>(op.carry)];
  return {b.at(q),     carry.k,     carry.v,  b.at(out), b.at(lse),  op.heads,
          op.kv_heads, op.head_dim, op.scale, op.window, op.softcap, op.fast};
}

}  // namespace

// The rounding to the carry's dtype has the identity for its gradient.
const Rule kKvStoreRule = {
    "kv_store", false, nullptr,
    [](Backward& backward, const Node& node) {
      const auto [dk, add_k] = backward.target(node.in[0]);
      const auto [dv, add_v] = backward.target(node.in[1]);
      RETRO_CHECK(!add_k && !add_v);  // keys and values have one reader
      backward.emit(op::KvLoadGrad{std::get<op::KvStore>(node.operation).carry}, {}, {dk, dv});
    },
    [](const Node& node, const Bindings& b) -> device::OpArgs {
      const CarryBuffers& carry = b.carries[static_cast<size_t>(std::get<op::KvStore>(node.operation).carry)];
      return device::KvStoreArgs{b.at(node.in[0]), b.at(node.in[1]), carry.k, carry.v};
    }};

const Rule kAttentionRule = {
    "attention", false,
    [](const Node& node, std::vector<ValueId>& values) {
      values.insert(values.end(), {node.in[0], node.out[0], node.out[1]});
    },
    [](Backward& backward, const Node& node) {
      const auto& op = std::get<op::Attention>(node.operation);
      if (!backward.keeps_carry_gradients()) backward.emit(op::ClearCarryGrad{op.carry}, {}, {});
      const ValueId dout = backward.gradient(node.out[0]);
      const ValueId q = backward.value(node.in[0]);
      const ValueId out = backward.value(node.out[0]);
      const ValueId lse = backward.value(node.out[1]);
      const auto [dq, accumulate] = backward.target(node.in[0]);
      RETRO_CHECK(!accumulate);
      backward.emit(
          op::AttentionBack{op}, {q, out, lse, dout},
          {dq, backward.scratch("delta", op.heads),
           backward.scratch("d.scores", int64_t{op.heads} * device::AttentionBackArgs::kScoreColumns)});
    },
    [](const Node& node, const Bindings& b) -> device::OpArgs {
      return forward_args(std::get<op::Attention>(node.operation), b, node.in[0], node.out[0], node.out[1]);
    }};

const Rule kAttentionBackRule = {
    "attention_back", false, nullptr, nullptr, [](const Node& node, const Bindings& b) -> device::OpArgs {
      const op::Attention& op = std::get<op::AttentionBack>(node.operation).forward;
      const CarryBuffers& carry = b.carries[static_cast<size_t>(op.carry)];
      device::AttentionBackArgs args;
      args.forward = forward_args(op, b, node.in[0], node.in[1], node.in[2]);
      args.dout = b.at(node.in[3]);
      args.dq = b.at(node.out[0]);
      args.dk = carry.dk;
      args.dv = carry.dv;
      args.delta = b.at(node.out[1]);
      args.dscores = b.at(node.out[2]);
      return args;
    }};

const Rule kKvLoadGradRule = {
    "kv_load_grad", false, nullptr, nullptr, [](const Node& node, const Bindings& b) -> device::OpArgs {
      const CarryBuffers& carry =
          b.carries[static_cast<size_t>(std::get<op::KvLoadGrad>(node.operation).carry)];
      return device::KvLoadGradArgs{carry.dk, carry.dv, b.at(node.out[0]), b.at(node.out[1])};
    }};

// dk and dv lie side by side in one block of carry rows.
const Rule kClearCarryGradRule = {
    "clear_carry_grad", false, nullptr, nullptr, [](const Node& node, const Bindings& b) -> device::OpArgs {
      const CarryBuffers& carry =
          b.carries[static_cast<size_t>(std::get<op::ClearCarryGrad>(node.operation).carry)];
      device::Matrix both = carry.dk;
      both.cols = 2 * carry.dk.cols;
      return device::ZeroArgs{both, 0};
    }};

}  // namespace retro::graph
