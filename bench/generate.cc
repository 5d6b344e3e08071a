#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/random.h"
#include "bench/commands.h"
#include "bench/peak.h"
#include "bench/timed_device.h"
#include "engine/engine.h"

namespace retro::bench {

namespace {

/// Sequences side by side: each has its own prompt, its own place in the carry and its own next token.
class Batch {
 public:
  Batch(engine::Engine& engine, const GenerateBench& o, int64_t sequences, int32_t vocabulary)
      : engine_(engine), prompt_(static_cast<int32_t>(o.prompt_tokens)) {
    const RandomStream random(3, "bench");
    const auto room = static_cast<size_t>(o.prompt_tokens + o.new_tokens + 1);
    for (size_t s = 0; s < static_cast<size_t>(sequences); ++s) {
      auto& tokens = tokens_.emplace_back(room, 0);
      for (size_t i = 0; i < static_cast<size_t>(o.prompt_tokens); ++i) {
        const float u = random.uniform(s * room + i) * 0.9F;
        tokens[i] = static_cast<int32_t>(u * static_cast<float>(vocabulary));
      }
    }
    targets_.resize(tokens_.size());
    logprobs_.resize(tokens_.size());
  }

  /// Each sequence's prompt, and its first new token.
  void prefill(int32_t width) {
    for (size_t s = 0; s < tokens_.size(); ++s) {
      for (int32_t begin = 0; begin < prompt_; begin += width)
        forward({{s, begin, std::min(prompt_, begin + width)}});
    }
    length_ = prompt_;
  }

  /// One token more of all of them.
  void decode() {
    std::vector<Step> steps;
    for (size_t s = 0; s < tokens_.size(); ++s) steps.push_back({s, length_, length_ + 1});
    forward(steps);
    ++length_;
  }

 private:
  struct Step {
    size_t sequence;
    int32_t begin, end;
  };

  void forward(const std::vector<Step>& steps) {
    std::vector<engine::Sequence> set;
    std::vector<engine::Piece> pieces;
    for (const Step& step : steps) {
      const auto room = static_cast<int32_t>(tokens_[step.sequence].size());
      targets_[step.sequence] = step.end;
      set.push_back(
          {tokens_[step.sequence], {&targets_[step.sequence], 1}, {&logprobs_[step.sequence], 1}, {}});
      pieces.push_back({static_cast<int32_t>(pieces.size()), step.begin, step.end,
                        static_cast<int32_t>(step.sequence) * room});
    }
    const engine::Logits logits = engine_.next_logits(set, pieces);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].end < prompt_) continue;
      const auto row = logits.row(i);
      tokens_[steps[i].sequence][static_cast<size_t>(steps[i].end)] =
          static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
    }
  }

  engine::Engine& engine_;
  int32_t prompt_;
  int32_t length_ = 0;
  std::vector<std::vector<int32_t>> tokens_;
  std::vector<int32_t> targets_;
  std::vector<float> logprobs_;
};

/// Of one prompt token: the products with the blocks' weights; attention and the one row of logits are left
/// out.
double forward_operations(const model::Model& model) {
  double weights = 0;
  for (const auto* w : model.block_matrices())
    weights += static_cast<double>(w->rows()) * static_cast<double>(w->cols());
  return 2 * weights;
}

/// On all linear layers; nothing where `rank` is 0.
std::optional<model::Adapter> random_adapter(const model::Model& model, int64_t rank) {
  if (rank == 0) return std::nullopt;
  const std::vector<std::string> all = {"auto"};
  model::Adapter adapter = model::make_adapter(
      model::choose_targets(model, all, static_cast<int32_t>(rank), 16.0F, tensor::DType::F16), 1);
  const RandomStream random(2, "bench");
  for (size_t i = 0; i < adapter.weights.size(); ++i) adapter.weights[i] = 0.02F * (random.uniform(i) - 0.5F);
  return adapter;
}

}  // namespace

nlohmann::ordered_json run_generate(const GenerateBench& o) {
  const model::Model model(o.model);
  TimedDevice device(device::make_cpu_device(o.threads));
  const std::optional<model::Adapter> adapter = random_adapter(model, o.adapter_rank);
  nlohmann::ordered_json json = {{"products", o.exact ? "exact" : "fast"}, {"adapter_rank", o.adapter_rank}};
  for (const int64_t sequences : o.sequences) {
    engine::EngineOptions options;
    options.train = false;
    options.micro_batch = static_cast<int32_t>(std::max(sequences, std::min<int64_t>(128, o.prompt_tokens)));
    options.set_rows = static_cast<int32_t>(sequences * (o.prompt_tokens + o.new_tokens + 1));
    options.head_chunk_rows = sequences;
    options.fast_activations = !o.exact;
    engine::EnginePlan plan = engine::plan_engine(model, adapter ? &adapter->layout : nullptr, options);
    const int64_t kv = std::ranges::find(plan.parts, "keys and values", &engine::MemoryPart::name)->bytes;
    engine::Engine engine(device, adapter ? &*adapter : nullptr, std::move(plan));
    Batch batch(engine, o, sequences, model.hyperparameters().vocabulary);
    batch.prefill(options.micro_batch);  // reads the weights into memory
    const double peak = fma_peak_of(o.threads, 0.1);
    const double bandwidth = read_bandwidth(o.threads, 0.2);
    const double start = wall_seconds();
    batch.prefill(options.micro_batch);
    const double prefilled = wall_seconds();
    device.clear();
    for (int64_t i = 0; i < o.new_tokens; ++i) batch.decode();
    const double prefill = static_cast<double>(sequences * o.prompt_tokens) / (prefilled - start);
    const double decode = static_cast<double>(sequences * o.new_tokens) / (wall_seconds() - prefilled);
    // A decoded token of all sequences reads every weight once, the embedding's as the head.
    const double prefill_share = prefill * forward_operations(model) / peak;
    const double decode_share = decode / static_cast<double>(sequences) *
                                static_cast<double>(model.file().tensor_bytes()) / bandwidth;
    fmt::print(
        "{:3} sequences: prefill {:.1f} tok/s ({:.1f} % of the FMA peak), decode {:.1f} tok/s ({:.1f} % of "
        "the read bandwidth)\n",
        sequences, prefill, 100 * prefill_share, decode, 100 * decode_share);
    if (o.by_operation) {
      for (const auto& [name, seconds] : device.times())
        fmt::print("    {:12} {:6.1f} %\n", name,
                   100 * seconds * decode / static_cast<double>(sequences * o.new_tokens));
    }
    json["rows"].push_back({{"sequences", sequences},
                            {"prefill_tokens_per_second", prefill},
                            {"decode_tokens_per_second", decode},
                            {"prefill_share_of_fma_peak", prefill_share},
                            {"decode_share_of_read_bandwidth", decode_share},
                            {"kv_bytes", kv}});
  }
  return json;
}

}  // namespace retro::bench
