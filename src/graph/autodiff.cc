#include <algorithm>

#include "base/error.h"
#include "graph/backward.h"
#include "graph/rules.h"

namespace retro::graph {

Backward::Backward(const Graph& graph, const ProgramOptions& options, Program& program,
                   std::vector<ValueId> checkpoints, ValueId output_gradient)
    : graph_(graph), options_(options), program_(program), checkpoints_(std::move(checkpoints)) {
  const size_t n = graph.values.size();
  producer_.assign(n, graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId v : graph.nodes[i].out) producer_[static_cast<size_t>(v)] = i;
  }
  current_.resize(n);
  for (size_t i = 0; i < n; ++i) current_[i] = static_cast<ValueId>(i);
  gradients_.assign(n, kNone);
  gradients_[static_cast<size_t>(graph.output)] = output_gradient;
  find_wanted();
  find_kept();
}

// A value wants a gradient when a trained term lies at or above it. Keys and values reach the attention
// through its carry, so a carry counts like a value.
void Backward::find_wanted() {
  wants_.assign(graph_.values.size(), false);
  std::vector<bool> carry_wants(graph_.carries.size(), false);
  for (const Node& node : graph_.nodes) {
    bool wanted = false;
    for (const ValueId v : node.in) wanted = wanted || wants_[static_cast<size_t>(v)];
    if (const auto* linear = std::get_if<op::Linear>(&node.operation)) wanted = wanted || linear->lora >= 0;
    if (const auto* store = std::get_if<op::KvStore>(&node.operation)) {
      carry_wants[static_cast<size_t>(store->carry)] = wanted;
    }
    if (const auto* attention = std::get_if<op::Attention>(&node.operation)) {
      wanted = wanted || carry_wants[static_cast<size_t>(attention->carry)];
    }
    for (const ValueId v : node.out) wants_[static_cast<size_t>(v)] = wanted;
  }
}

bool Backward::follows_from_kept(ValueId v, const std::vector<bool>& kept) const {
  if (kept[static_cast<size_t>(v)]) return true;
  const size_t p = producer_[static_cast<size_t>(v)];
  const Node& node = graph_.nodes[p];
  if (!rule_of(node).cheap) return false;
  return std::all_of(node.in.begin(), node.in.end(), [&](ValueId x) { return follows_from_kept(x, kept); });
}

// First what cannot be recomputed cheaply, then what does not follow from that.
void Backward::find_kept() {
  std::vector<ValueId> needed;
  for (const Node& node : graph_.nodes) {
    const bool wanted =
        std::any_of(node.out.begin(), node.out.end(), [&](ValueId v) { return wants_gradient(v); });
    const Rule& rule = rule_of(node);
    if (wanted && rule.needs != nullptr) rule.needs(node, needed);
  }
  kept_.assign(graph_.values.size(), false);
  for (const ValueId v : needed) {
    if (!rule_of(graph_.nodes[producer_[static_cast<size_t>(v)]]).cheap) kept_[static_cast<size_t>(v)] = true;
  }
  for (const ValueId v : needed) {
    if (!follows_from_kept(v, kept_)) kept_[static_cast<size_t>(v)] = true;
  }
}

ValueId Backward::value(ValueId v) {
  const auto index = static_cast<size_t>(v);
  if (current_[index] == kNone) {
    for (const ValueId x : graph_.nodes[producer_[index]].in) value(x);
    repeat(producer_[index]);
  }
  return current_[index];
}

void Backward::repeat(size_t index, bool low_rank_only) {
  const Node& node = graph_.nodes[index];
  std::vector<ValueId> in;
  for (const ValueId v : node.in) in.push_back(value(v));
  std::vector<ValueId> out;
  for (const ValueId v : node.out) {
    if (low_rank_only && out.empty()) {
      out.push_back(kNone);
      continue;
    }
    const Value& original = graph_.values[static_cast<size_t>(v)];
    out.push_back(scratch(original.name, original.cols));
    current_[static_cast<size_t>(v)] = out.back();
  }
  emit(node.operation, std::move(in), std::move(out));
}

std::pair<ValueId, bool> Backward::target(ValueId v) {
  ValueId& gradient = gradients_[static_cast<size_t>(v)];
  if (gradient != kNone) return {gradient, true};
  gradient =
      scratch("d." + graph_.values[static_cast<size_t>(v)].name, graph_.values[static_cast<size_t>(v)].cols);
  return {gradient, false};
}

void Backward::share_gradient(ValueId x, ValueId y) {
  gradients_[static_cast<size_t>(x)] = gradients_[static_cast<size_t>(y)];
}

ValueId Backward::scratch(const std::string& name, int64_t width) {
  program_.values.push_back({name, width, 0, DType::F32});
  return static_cast<ValueId>(program_.values.size()) - 1;
}

void Backward::emit(const Operation& operation, std::vector<ValueId> in, std::vector<ValueId> out) {
  program_.nodes.push_back({operation, std::move(in), std::move(out)});
}

void Backward::run_segment(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    for (const ValueId v : graph_.nodes[i].out) {
      if (!kept_[static_cast<size_t>(v)]) current_[static_cast<size_t>(v)] = kNone;
    }
  }
  for (size_t i = end; i-- > begin;) {
    const Node& node = graph_.nodes[i];
    const Rule& rule = rule_of(node);
    bool wanted = std::any_of(node.out.begin(), node.out.end(),
                              [&](ValueId v) { return wants_gradient(v) && gradient(v) != kNone; });
    if (std::holds_alternative<op::KvStore>(node.operation)) {
      wanted = wants_gradient(node.in[0]) || wants_gradient(node.in[1]);
    }
    if (wanted && rule.gradient != nullptr) rule.gradient(*this, node);
  }
}

void Backward::repeat_segment(size_t first_layer, size_t end_layer) {
  const ValueId input = graph_.layer_input[first_layer];
  if (const ValueId stored = checkpoints_[first_layer]; stored != kNone) {
    const ValueId restored = scratch("checkpoint", graph_.values[static_cast<size_t>(input)].cols);
    emit(op::Copy{}, {stored}, {restored});
    current_[static_cast<size_t>(input)] = restored;
  }
  // Only what the backward pass reads, and what that follows from: the segment's own output is there already,
  // and keys and values still lie in the carry.
  const size_t begin = graph_.layer_begin[first_layer];
  const size_t end = graph_.layer_begin[end_layer];
  const ValueId output = graph_.layer_input[end_layer];
  std::vector<bool> read(graph_.values.size(), false);
  const auto is_read = [&](ValueId v) { return read[static_cast<size_t>(v)]; };
  for (size_t i = end; i-- > begin;) {
    const Node& node = graph_.nodes[i];
    for (const ValueId v : node.out) {
      if (kept_[static_cast<size_t>(v)] && v != output) read[static_cast<size_t>(v)] = true;
    }
    if (std::none_of(node.out.begin(), node.out.end(), is_read)) continue;
    for (const ValueId v : node.in) read[static_cast<size_t>(v)] = true;
  }
  for (size_t i = begin; i < end; ++i) {
    const Node& node = graph_.nodes[i];
    if (std::none_of(node.out.begin(), node.out.end(), is_read)) continue;
    repeat(i, std::holds_alternative<op::Linear>(node.operation) && !is_read(node.out[0]));
  }
}

void Backward::run() {
  const size_t layers = graph_.layer_begin.size() - 1;
  const size_t stride =
      options_.checkpoint_layers > 0 ? static_cast<size_t>(options_.checkpoint_layers) : layers;
  size_t first = layers > stride ? layers - stride : 0;
  const ValueId embedded = graph_.layer_input[0];
  if (rule_of(graph_.nodes[producer(embedded)]).cheap) current_[static_cast<size_t>(embedded)] = kNone;
  run_segment(graph_.layer_begin[first], graph_.nodes.size());
  // Segments end with the last layer; the first one may be short. The last one is not computed again, so it
  // is a whole one.
  for (size_t end = first; end > 0; end = first) {
    first = end > stride ? end - stride : 0;
    repeat_segment(first, end);
    run_segment(graph_.layer_begin[first], graph_.layer_begin[end]);
  }
}

namespace {

bool has_blocks(const device::Weight& w) {
  return tensor::dtype_info(w.dtype).block_elements > 1;
}

/// Appends the node with its fast product; rows of x in 8 bits are made once for all that read them, and
/// numbered by x in `quantized`.
void add_fast_linear(Node node, Program& program, std::vector<ValueId>& quantized) {
  auto& linear = std::get<op::Linear>(node.operation);
  linear.fast = true;
  if (has_blocks(linear.w)) {
    ValueId& x8 = quantized[static_cast<size_t>(node.in[0])];
    if (x8 == kNone) {
      program.values.push_back({"x8", device::quantized_columns(linear.w.cols), 0, DType::F32});
      x8 = static_cast<ValueId>(program.values.size()) - 1;
      program.nodes.push_back({op::Quantize{}, {node.in[0]}, {x8}});
    }
    node.in.push_back(x8);
  }
  program.nodes.push_back(std::move(node));
}

}  // namespace

Program make_program(const Graph& graph, const ProgramOptions& options) {
  RETRO_CHECK(!(options.backward && options.fast_activations));
  std::vector<ValueId> quantized(graph.values.size(), kNone);
  Program program;
  program.values = graph.values;
  program.loras = graph.loras;
  program.carries = graph.carries;
  const size_t layers = graph.layer_begin.size() - 1;
  const auto stride = static_cast<size_t>(options.checkpoint_layers);
  std::vector<ValueId> checkpoints(layers, kNone);
  size_t layer = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (layer < layers && graph.layer_begin[layer] == i) {
      const bool stored = options.backward && stride > 0 && layer > 0 && layer + stride < layers &&
                          (layers - layer) % stride == 0;
      if (stored && options.checkpoint_dtype != DType::F32) {
        const ValueId x = graph.layer_input[layer];
        program.values.push_back(
            {"checkpoint", graph.values[static_cast<size_t>(x)].cols, 0, options.checkpoint_dtype});
        checkpoints[layer] = static_cast<ValueId>(program.values.size()) - 1;
        program.nodes.push_back({op::Copy{}, {x}, {checkpoints[layer]}});
      }
      ++layer;
    }
    if (options.fast_activations && std::holds_alternative<op::Linear>(graph.nodes[i].operation)) {
      add_fast_linear(graph.nodes[i], program, quantized);
    } else {
      program.nodes.push_back(graph.nodes[i]);
      auto* attention = std::get_if<op::Attention>(&program.nodes.back().operation);
      if (attention != nullptr) attention->fast = options.fast_activations;
    }
    if (std::holds_alternative<op::KvStore>(graph.nodes[i].operation))
      program.carry_end = program.nodes.size();
  }
  program.forward_end = program.nodes.size();

  const auto add = [&](const char* name, int64_t cols, int64_t rows) {
    program.values.push_back({name, cols, rows, DType::F32});
    return static_cast<ValueId>(program.values.size()) - 1;
  };
  const int64_t width = graph.head.cols;
  const int64_t chunk = options.head_chunk_rows;
  const ValueId dh = options.backward ? add("d.output", width, 0) : kNone;
  std::vector<ValueId> scratch = {dh, add("head.rows", width, chunk), add("d.head.rows", width, chunk),
                                  add("logits", graph.head.rows, chunk)};
  const bool fast = options.fast_activations;
  if (fast && has_blocks(graph.head))
    scratch.push_back(add("head.rows.x8", device::quantized_columns(width), chunk));
  program.nodes.push_back({op::Head{graph.head, static_cast<int32_t>(chunk), graph.head_softcap, fast},
                           {graph.output},
                           std::move(scratch)});
  program.head_end = program.nodes.size();
  if (options.backward) Backward(graph, options, program, std::move(checkpoints), dh).run();
  return program;
}

}  // namespace retro::graph
