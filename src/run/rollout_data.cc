#include "run/rollout_data.h"

#include <algorithm>

#include "base/error.h"

namespace retro::run {

namespace {

std::vector<Prompt> load(const data::PromptFile& file, const Document& document,
                         const ModelContext& context) {
  const SamplingSection& sampling = document.rollout().sampling;
  data::PromptOptions options;
  options.ctx = document.training.ctx;
  options.max_new_tokens = sampling.max_new_tokens;
  options.max_new_tokens_name = document.run.algorithm == Algorithm::ppo ? "ppo.sampling.max_new_tokens"
                                                                         : "grpo.sampling.max_new_tokens";
  auto tokens = data::tokenize_prompts(file, context.chat_template(), context.tokenizer, options);
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const data::PromptRecord record = file.record(i);
    prompts.push_back({std::move(tokens[i]), record.last_user, static_cast<int64_t>(i), record.messages});
  }
  return prompts;
}

}  // namespace

PromptFiles open_prompts(const Document& document) {
  const auto open = [&](const std::string& key, const std::filesystem::path& path, data::PromptUse use) {
    try {
      return data::PromptFile(path, use);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io || !document.given(key)) throw;
      throw error.within(place(document, key));
    }
  };
  const std::string key = document.run.algorithm == Algorithm::ppo ? "ppo.prompts" : "grpo.prompts";
  PromptFiles files{open(key, document.rollout().prompts, data::PromptUse::rollout), std::nullopt};
  if (document.evaluation)
    files.evaluation.emplace(open("evaluation.data", document.evaluation->data, data::PromptUse::evaluation));
  return files;
}

int64_t RolloutPrompts::longest() const {
  size_t most = 0;
  for (const Prompt& prompt : training) most = std::max(most, prompt.tokens.size());
  for (const Prompt& prompt : evaluation) most = std::max(most, prompt.tokens.size());
  return static_cast<int64_t>(most);
}

RolloutPrompts load_prompts(const PromptFiles& files, const Document& document, const ModelContext& context) {
  RolloutPrompts prompts;
  prompts.training = load(files.train, document, context);
  prompts.fingerprint = files.train.fingerprint();
  if (!files.evaluation) return prompts;
  prompts.evaluation = load(*files.evaluation, document, context);
  prompts.evaluation_fingerprint = files.evaluation->fingerprint();
  const auto size = static_cast<int64_t>(prompts.evaluation.size());
  const int64_t most = document.evaluation->max_examples.value_or(size);
  if (most >= size) return prompts;
  std::vector<Prompt> kept;
  for (int64_t i = 0; i < most; ++i)
    kept.push_back(std::move(prompts.evaluation[static_cast<size_t>(i * size / most)]));
  prompts.evaluation = std::move(kept);
  return prompts;
}

}  // namespace retro::run
