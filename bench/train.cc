#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/memory_info.h"
#include "base/random.h"
#include "bench/commands.h"
#include "bench/peak.h"
#include "bench/timed_device.h"
#include "engine/engine.h"
#include "engine/optimizer.h"

namespace retro::bench {

std::vector<std::pair<std::string, double>> TimedDevice::times() const {
  // In the order of the variant OpArgs.
  static constexpr std::array kNames = {
      "embed",    "rms_norm",  "rms_norm_back",  "linear",       "linear_back", "weight_grad", "rope",
      "kv_store", "attention", "attention_back", "kv_load_grad", "gated",       "gated_back",  "add",
      "split",    "copy",      "zero",           "head",         "quantize",    "optimizer"};
  static_assert(kNames.size() == kOptimizer + 1);
  std::vector<std::pair<std::string, double>> times;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (seconds_[i] > 0) times.emplace_back(kNames[i], seconds_[i]);
  }
  std::ranges::sort(times, [](const auto& a, const auto& b) { return a.second > b.second; });
  return times;
}

namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Operations that a step needs a token, by kind: forward products, gradients of their inputs, the head, the
/// adapter, attention with half of ctx keys. What is computed again does not count.
std::map<std::string, double> needed_operations(const model::Model& model, const model::AdapterLayout& layout,
                                                int64_t ctx) {
  const model::Hyperparameters& h = model.hyperparameters();
  double weights = 0;
  for (const auto* w : model.block_matrices())
    weights += static_cast<double>(w->rows()) * static_cast<double>(w->cols());
  const auto adapter = static_cast<double>(layout.size());
  double attention = 0;
  for (int32_t layer = 0; layer < h.layers; ++layer) {
    const double half = static_cast<double>(ctx) / 2;
    const double keys = h.slides(layer) ? std::min<double>(half, h.window) : half;
    attention += 2.0 * keys * h.heads * h.head_dim;
  }
  return {{"linear", 2 * weights + 2 * adapter},
          {"linear_back", 2 * weights + 4 * adapter},  // of inputs, and of A and B themselves
          {"head", 4.0 * h.vocabulary * static_cast<double>(h.embedding)},
          {"attention", 2 * attention},
          {"attention_back", 4 * attention}};  // dV, dP, dQ, dK
}

model::Adapter make_adapter(const model::Model& model, int64_t rank) {
  const std::vector<std::string> all = {"auto"};
  model::Adapter adapter = model::make_adapter(
      model::choose_targets(model, all, static_cast<int32_t>(rank), 16.0F, tensor::DType::F16), 1);
  const RandomStream random(2, "bench");
  for (size_t i = 0; i < adapter.weights.size(); ++i) adapter.weights[i] = 0.02F * (random.uniform(i) - 0.5F);
  return adapter;
}

engine::EngineOptions engine_options(const TrainBench& o) {
  engine::EngineOptions options;
  options.micro_batch = static_cast<int32_t>(std::min(o.micro_batch, o.ctx - 1));
  options.set_rows = static_cast<int32_t>(o.ctx - 1);
  options.kv_dtype = o.kv_dtype == "f16" ? tensor::DType::F16 : tensor::DType::F32;
  options.checkpoint_layers = static_cast<int32_t>(o.checkpoint_layers);
  options.checkpoint_dtype = *tensor::parse_dtype(o.checkpoint_dtype);
  if (o.whole_logits) options.head_chunk_rows = options.micro_batch;
  return options;
}

nlohmann::ordered_json bytes_by_part(const engine::EnginePlan& plan) {
  static const std::map<std::string, std::string> kShort = {
      {"activations kept for the backward pass", "kept"},
      {"activations and gradients of the moment", "working"},
      {"logits tiles", "logits"},
      {"keys and values", "kv"},
      {"gradients of keys and values", "kv_gradients"},
      {"adapter gradient", "adapter_gradient"}};
  nlohmann::ordered_json json;
  for (const auto& part : plan.parts) {
    const auto name = kShort.find(part.name);
    json[name == kShort.end() ? part.name : name->second] = part.bytes;
  }
  return json;
}

}  // namespace

nlohmann::ordered_json run_train(const TrainBench& o) {
  const model::Model model(o.model);
  model::Adapter adapter = make_adapter(model, o.rank);
  TimedDevice device(device::make_cpu_device(o.threads));
  const engine::EngineOptions options = engine_options(o);
  engine::EnginePlan plan = engine::plan_engine(model, &adapter.layout, options);
  const nlohmann::ordered_json parts = bytes_by_part(plan);
  engine::Engine engine(device, &adapter, std::move(plan));
  engine::Optimizer optimizer(device, {}, engine::parameters_of(adapter.layout));

  const auto count = static_cast<size_t>(o.ctx);
  std::vector<int32_t> tokens(count), targets(count - 1);
  const RandomStream random(3, "bench");
  for (size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<int32_t>(random.uniform(i) * 0.9F *
                                     static_cast<float>(model.hyperparameters().vocabulary));
  std::iota(targets.begin(), targets.end(), 1);
  std::vector<float> logprobs(count - 1), dlogprobs(count - 1, -1.0F / static_cast<float>(count - 1));
  const engine::Sequence sequence{tokens, targets, logprobs, dlogprobs};
  const std::map<std::string, double> needed = needed_operations(model, adapter.layout, o.ctx);
  const double operations = static_cast<double>(count - 1) *
                            std::accumulate(needed.begin(), needed.end(), 0.0,
                                            [](double sum, const auto& kind) { return sum + kind.second; });

  std::vector<double> seconds, shares;
  for (int64_t step = -1; step < o.steps; ++step) {  // the first warms up
    const double before = fma_peak_of(o.threads, 0.05);
    if (step == 0) device.clear();
    const double start = wall_seconds();
    engine.clear_gradient();
    engine.accumulate({&sequence, 1});
    optimizer.step(adapter.weights, engine.gradient(), 1e-5);
    engine.refresh_adapter();
    const double elapsed = wall_seconds() - start;
    const double peak = 0.5 * (before + fma_peak_of(o.threads, 0.05));
    if (step < 0) continue;
    seconds.push_back(elapsed);
    shares.push_back(operations / elapsed / peak);
  }
  nlohmann::ordered_json json;
  json["tokens_per_second"] = static_cast<double>(o.ctx) / median(seconds);
  json["gflops"] = operations / median(seconds) / 1e9;
  json["share_of_fma_peak"] = median(shares);
  json["peak_rss_bytes"] = peak_resident_bytes();
  json["parts"] = parts;
  fmt::print("step of {} tokens: {:.1f} tok/s, {:.1f} GFLOP/s, {:.1f} % of the peak, {} MiB\n", o.ctx,
             json["tokens_per_second"].get<double>(), json["gflops"].get<double>(), 100 * median(shares),
             peak_resident_bytes() >> 20);
  if (!o.by_operation) return json;
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  double told = 0;
  for (const auto& [name, time] : device.times()) {
    fmt::print("  {:16} {:5.1f} %  {:8.2f} ms a step\n", name, 100 * time / all,
               1e3 * time / static_cast<double>(o.steps));
    json["operations"][name]["share_of_time"] = time / all;
    if (const auto kind = needed.find(name); kind != needed.end()) {
      const double whole = operations / static_cast<double>(count - 1);
      json["operations"][name]["share_of_fma_peak"] = median(shares) * (kind->second / whole) / (time / all);
    }
    told += time;
  }
  fmt::print("  {:16} {:5.1f} %\n", "other", 100 * (1 - told / all));
  return json;
}

}  // namespace retro::bench
