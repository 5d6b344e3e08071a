// The benchmarks of retrograd-bench. Each measures the machine's own peak in turn with the work, so that a
// figure is a share of what the machine gave at that moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace retro::bench {

/// Shares of the FMA peak by shape, type, direction and rows. `target`: an instruction set, "" for the best;
/// throws where the machine lacks it.
nlohmann::ordered_json run_kernels(const std::string& filter, const std::string& target);

struct TrainBench {
  std::filesystem::path model;
  int threads = 1;
  int64_t ctx = 512;
  int64_t micro_batch = 512;
  int64_t rank = 8;
  int64_t steps = 5;
  int64_t checkpoint_layers = 0;
  std::string checkpoint_dtype = "f32";
  std::string kv_dtype = "f16";
  bool whole_logits = false;
  bool by_operation = false;
};

/// Whole LoRA steps (all linear layers, AdamW) over one random sequence of ctx tokens.
nlohmann::ordered_json run_train(const TrainBench& options);

struct GenerateBench {
  std::filesystem::path model;
  int threads = 1;
  int64_t prompt_tokens = 512;
  int64_t new_tokens = 64;
  std::vector<int64_t> sequences = {1, 16};
  bool exact = false;        // the training forward's products, else those of EngineOptions::fast_activations
  int64_t adapter_rank = 0;  // of a random adapter of all linear layers; 0: none
  bool by_operation = false;
};

/// Prefill and greedy decoding, of each number of sequences at once.
nlohmann::ordered_json run_generate(const GenerateBench& options);

struct TokenizeBench {
  std::filesystem::path model;
  std::filesystem::path text;
  int rounds = 5;
};

/// Loading a model's vocabulary, and text to tokens and back, on one core.
nlohmann::ordered_json run_tokenize(const TokenizeBench& options);

}  // namespace retro::bench
