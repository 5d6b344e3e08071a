// The commented document that `retrograd new` writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace retro::run {

/// Values of a starter document; paths as they shall stand in it.
struct StarterOptions {
  std::string model = "model.gguf";
  std::optional<std::string> data;  // none: train.jsonl or prompts.jsonl
  std::string output = "adapter.gguf";
  std::string checkpoints = "checkpoints";
  std::optional<std::string> evaluation_data;
  int64_t ctx = 512;
  int64_t micro_batch = 512;
  int64_t gradient_accumulation = 1;
  bool gradient_checkpointing = false;
  std::string checkpoint_dtype = "f32";
};

/// A document for `algorithm` that load_document accepts as it is. Throws Error(config) for an algorithm that
/// this build does not have.
std::string starter_document(const std::string& algorithm, const StarterOptions& options);

}  // namespace retro::run
