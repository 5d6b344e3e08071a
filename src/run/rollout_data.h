// The prompts of a run that samples answers.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/prompts.h"
#include "run/document.h"
#include "run/model_context.h"

namespace retro::run {

/// The files of a document, their lines checked before the model loads.
struct PromptFiles {
  data::PromptFile train;
  std::optional<data::PromptFile> evaluation;
};

PromptFiles open_prompts(const Document& document);

/// A prompt as tokens, and the message that a reward program gets.
struct Prompt {
  std::vector<int32_t> tokens;
  std::string last_user;
  int64_t index = 0;  // in its file
  std::shared_ptr<const nlohmann::ordered_json> messages;
};

/// The prompts that a run samples answers to, and the fingerprints of their files.
struct RolloutPrompts {
  std::vector<Prompt> training;
  std::string fingerprint;
  std::vector<Prompt> evaluation;  // with evaluation.max_examples applied
  std::string evaluation_fingerprint;

  /// Tokens of the longest prompt.
  int64_t longest() const;
};

/// Throws Error(data) that lists the prompts which do not fit training.ctx with their answer.
RolloutPrompts load_prompts(const PromptFiles& files, const Document& document, const ModelContext& context);

}  // namespace retro::run
