#include "tests/support/toy_models.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "base/error.h"

namespace retro::test {

std::span<const ToyModel> toy_models() {
  static const std::vector<ToyModel> kAll = {
      {"llama", {.architecture = "llama"}},
      {"llama_window", {.architecture = "llama", .sliding_window = 24}},
      {"llama_rope", {.architecture = "llama", .rope_linear = 2, .rope_factors = {"rope_freqs.weight"}}},
      {"qwen2", {.architecture = "qwen2", .rope_freq_base = 1000000}},
      {"qwen3", {.architecture = "qwen3", .head_dim = 16, .rope_freq_base = 1000000}},
      {"phi3", {.architecture = "phi3", .rope_dims = 6}},
      {"phi3_short",
       {.architecture = "phi3",
        .context_length = 1024,
        .sliding_window = 24,
        .original_context = 256,
        .rope_attention = 1.2F,
        .rope_factors = {"rope_factors_long.weight", "rope_factors_short.weight"}}},
      {"phi3_long",
       {.architecture = "phi3",
        .context_length = 1024,
        .original_context = 32,
        .rope_attention = 1.2F,
        .rope_factors = {"rope_factors_long.weight", "rope_factors_short.weight"}}},
      {"gemma2",
       {.architecture = "gemma2", .sliding_window = 16, .attention_softcap = 1.5F, .output_softcap = 4}},
      {"gemma3", {.architecture = "gemma3", .sliding_window = 16, .sliding_window_pattern = 2}},
  };
  return kAll;
}

void PrintTo(const ToyModel& toy, std::ostream* out) {
  *out << toy.name;
}

const ToySpec& toy_model(std::string_view name) {
  const auto all = toy_models();
  const auto at = std::find_if(all.begin(), all.end(), [&](const ToyModel& toy) { return toy.name == name; });
  RETRO_CHECK(at != all.end());
  return at->spec;
}

}  // namespace retro::test
