#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "bench/commands.h"
#include "bench/peak.h"
#include "engine/engine.h"

namespace retro::bench {

nlohmann::ordered_json run_generate(const GenerateBench& o) {
  const model::Model model(o.model);
  const auto device = device::make_cpu_device(o.threads);
  engine::EngineOptions options;
  options.train = false;
  options.micro_batch = static_cast<int32_t>(std::min<int64_t>(128, o.prompt_tokens));
  options.set_rows = static_cast<int32_t>(o.prompt_tokens + o.new_tokens);
  options.head_chunk_rows = 1;
  engine::Engine engine(*device, nullptr, engine::plan_engine(model, nullptr, options));

  std::vector<int32_t> prompt(static_cast<size_t>(o.prompt_tokens));
  const RandomStream random(3, "bench");
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<int32_t>(random.uniform(i) * 0.9F *
                                     static_cast<float>(model.hyperparameters().vocabulary));

  (void)engine.next_logits(std::span(prompt).first(1), 0);  // reads the weights into memory
  nlohmann::ordered_json json;
  for (const int64_t sequences : o.sequences) {
    const double start = wall_seconds();
    std::span<const float> logits = engine.next_logits(prompt, 0);
    const double prefilled = wall_seconds();
    for (int64_t i = 0; i < o.new_tokens; ++i) {
      const auto next = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
      logits = engine.next_logits({&next, 1}, static_cast<int32_t>(o.prompt_tokens + i));
    }
    const double prefill = static_cast<double>(o.prompt_tokens) / (prefilled - start);
    const double decode = static_cast<double>(o.new_tokens) / (wall_seconds() - prefilled);
    fmt::print("{} sequence: prefill {:.1f} tok/s, decode {:.1f} tok/s\n", sequences, prefill, decode);
    json["rows"].push_back({{"sequences", sequences},
                            {"prefill_tokens_per_second", prefill},
                            {"decode_tokens_per_second", decode}});
  }
  return json;
}

}  // namespace retro::bench
