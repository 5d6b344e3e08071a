#include "graph/builder.h"

#include <numeric>

#include "base/error.h"

namespace retro::graph {

ValueId Builder::emit(const Operation& operation, std::vector<ValueId> in, const std::string& name,
                      int64_t width) {
  const ValueId out = graph_.add_value(name, width);
  graph_.nodes.push_back({operation, std::move(in), {out}});
  return out;
}

ValueId Builder::embed(const NamedWeight& table, float scale) {
  return emit(op::Embed{table.weight, scale}, {}, "embed", table.weight.cols);
}

ValueId Builder::rms_norm(ValueId x, const float* weight, float eps, int32_t groups) {
  RETRO_CHECK(cols(x) % groups == 0);
  return emit(op::RmsNorm{weight, groups, eps}, {x}, "norm", cols(x));
}

ValueId Builder::linear(ValueId x, const NamedWeight& w) {
  if (w.weight.cols != cols(x)) {
    fail(ErrorKind::model, "tensor '{}' has rows of {} elements where the model's metadata asks for {}",
         w.name, w.weight.cols, cols(x));
  }
  const int32_t rank = rank_of_(w.name);
  const ValueId y = graph_.add_value(w.name, w.weight.rows);
  Node node{op::Linear{w.weight, -1}, {x}, {y}};
  if (rank > 0) {
    std::get<op::Linear>(node.operation).lora = static_cast<int32_t>(graph_.loras.size());
    graph_.loras.push_back({w.name, rank, w.weight.cols, w.weight.rows});
    node.out.push_back(graph_.add_value(w.name + ".u", rank));
  }
  graph_.nodes.push_back(std::move(node));
  return y;
}

ValueId Builder::rope(ValueId x, const op::Rope& rope) {
  RETRO_CHECK(cols(x) == int64_t{rope.heads} * rope.head_dim);
  return emit(rope, {x}, "rope", cols(x));
}

ValueId Builder::attention(ValueId q, ValueId k, ValueId v, op::Attention attention) {
  RETRO_CHECK(cols(k) == int64_t{attention.kv_heads} * attention.head_dim && cols(v) == cols(k));
  RETRO_CHECK(cols(q) == int64_t{attention.heads} * attention.head_dim);
  attention.carry = static_cast<int32_t>(graph_.carries.size());
  graph_.carries.push_back({cols(k)});
  graph_.nodes.push_back({op::KvStore{attention.carry}, {k, v}, {}});
  const ValueId out = graph_.add_value("attention", cols(q));
  const ValueId lse = graph_.add_value("attention.lse", attention.heads);
  graph_.nodes.push_back({attention, {q}, {out, lse}});
  return out;
}

ValueId Builder::gated(ValueId gate, ValueId up, device::Activation activation) {
  RETRO_CHECK(cols(gate) == cols(up));
  return emit(op::Gated{activation}, {gate, up}, "gated", cols(gate));
}

ValueId Builder::add(ValueId a, ValueId b) {
  RETRO_CHECK(cols(a) == cols(b));
  return emit(op::Add{}, {a, b}, "residual", cols(a));
}

ValueId Builder::add_bias(ValueId x, const float* bias) {
  return emit(op::AddBias{bias}, {x}, "biased", cols(x));
}

std::vector<ValueId> Builder::split(ValueId x, const std::vector<int64_t>& widths) {
  RETRO_CHECK(widths.size() <= op::Split::kMost);
  RETRO_CHECK(std::accumulate(widths.begin(), widths.end(), int64_t{0}) == cols(x));
  std::vector<ValueId> parts;
  for (const int64_t width : widths) parts.push_back(graph_.add_value("part", width));
  graph_.nodes.push_back({op::Split{}, {x}, parts});
  return parts;
}

void Builder::begin_layer(ValueId x) {
  graph_.layer_begin.push_back(graph_.nodes.size());
  graph_.layer_input.push_back(x);
}

void Builder::end_layers(ValueId x) {
  begin_layer(x);
}

Graph Builder::finish(ValueId h, const NamedWeight& head, float softcap) {
  graph_.head_softcap = softcap;
  RETRO_CHECK(graph_.layer_begin.size() >= 2 && head.weight.cols == cols(h));
  graph_.output = h;
  graph_.head = head.weight;
  return std::move(graph_);
}

}  // namespace retro::graph
