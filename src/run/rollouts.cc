#include "run/rollouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "run/interrupt.h"

namespace retro::run {

namespace {

bool shares_prompts() {
  const char* value = std::getenv("RETRO_GENERATION_PREFIX_CACHE");
  return value == nullptr || std::string_view(value) != "0";
}

}  // namespace

engine::GeneratorOptions generator_options(const Document& document, const ModelContext& context,
                                           int64_t longest_prompt, int64_t answers) {
  constexpr int64_t kBatch = 256;
  const TrainingSection& training = document.training;
  const SamplingSection& sampling = document.rollout().sampling;
  engine::GeneratorOptions options;
  options.concurrency = static_cast<int32_t>(std::min(training.generation_concurrency, answers));
  options.batch =
      static_cast<int32_t>(std::min(training.generation_batch.value_or(kBatch),
                                    std::max<int64_t>(options.concurrency, answers * longest_prompt)));
  options.context = static_cast<int32_t>(training.ctx);
  options.pages =
      engine::generation_pages(options.concurrency, answers, longest_prompt, sampling.max_new_tokens);
  options.fast = training.fast_sampling_context;
  const bool exact = !training.fast_sampling_context && training.kv_dtype == CacheType::f32;
  options.kv_dtype = exact ? tensor::DType::F32 : tensor::DType::F16;
  options.end_tokens = context.tokenizer.vocabulary().eog_ids();
  return options;
}

std::vector<Rollout> sample_rollouts(device::Device& device, const ModelContext& context,
                                     const model::Adapter* adapter, const Document& document,
                                     std::span<const RolloutRequest> requests, int64_t longest_prompt,
                                     std::string_view phase, Reporter& reporter, SamplingFigures& figures) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const SamplingSection& sampling = document.rollout().sampling;
  const auto count = static_cast<int64_t>(requests.size());
  engine::Generator generator(device, context.model, adapter,
                              generator_options(document, context, longest_prompt, count));
  std::vector<engine::GenerationRequest> wanted;
  for (const RolloutRequest& request : requests) {
    engine::SamplingOptions options{sampling.temperature, sampling.top_p, request.seed, 0};
    wanted.push_back({request.prompt->tokens, options, static_cast<int32_t>(sampling.max_new_tokens)});
  }
  const auto progress = [&](size_t finished, int64_t tokens) {
    reporter.progress(phase, static_cast<int64_t>(finished), count,
                      fmt::format("answers, {:.0f} tok/s", static_cast<double>(tokens) / seconds()));
    return !interrupted();
  };
  auto completions = generator.generate(wanted, progress, shares_prompts());
  std::vector<Rollout> rollouts(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    engine::Completion& completion = completions[i];
    Rollout& rollout = rollouts[i];
    rollout.prompt = requests[i].prompt;
    rollout.seed = requests[i].seed;
    rollout.truncated = completion.finish == engine::Finish::length;
    rollout.tokens = std::move(completion.tokens);
    rollout.sampled = std::move(completion.logprobs);
    const size_t ended = rollout.truncated ? 0 : 1;
    rollout.text = context.tokenizer.decode(std::span(rollout.tokens).first(rollout.tokens.size() - ended));
    figures.tokens += rollout.length();
  }
  figures.computed += generator.computed_tokens();
  figures.spared += generator.spared_tokens();
  figures.seconds += seconds();
  return rollouts;
}

void score_rollouts(reward::RewardProgram& program, std::span<Rollout> rollouts) {
  std::vector<reward::RewardRequest> requests;
  for (const Rollout& rollout : rollouts) requests.push_back({rollout.prompt->last_user, rollout.text});
  const auto rewards = program.score(requests);
  for (size_t i = 0; i < rollouts.size(); ++i) rollouts[i].verified = rollouts[i].reward = rewards[i].reward;
}

reward::RewardOptions reward_options(const Document& document) {
  const RolloutSection& section = document.rollout();
  reward::RewardOptions options;
  options.command = section.reward_command;
  options.mode = section.reward_mode == RewardMode::oneshot ? reward::RewardMode::oneshot
                                                            : reward::RewardMode::persistent;
  options.timeout_seconds = section.reward_timeout_seconds;
  options.interrupted = [] { return interrupted(); };
  return options;
}

engine::Fanout fanout_of(const Document& document) {
  using Kind = engine::Fanout::Kind;
  const int64_t fanout = document.training.shared_prefix_fanout;
  if (fanout == TrainingSection::kFanoutAuto) return {};
  if (fanout == TrainingSection::kFanoutOff) return {Kind::off, 0};
  if (fanout == TrainingSection::kFanoutMax) return {Kind::all, 0};
  return {Kind::at_most, fanout};
}

}  // namespace retro::run
