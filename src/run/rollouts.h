// Sampling answers and having them scored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/generator.h"
#include "engine/trees.h"
#include "reward/reward_program.h"
#include "run/document.h"
#include "run/model_context.h"
#include "run/reporter.h"
#include "run/rollout_data.h"

namespace retro::run {

/// A sampled answer.
struct Rollout {
  const Prompt* prompt = nullptr;
  uint64_t seed = 0;
  std::vector<int32_t> tokens;
  std::vector<float> sampled;  // log-probabilities as generation computed them
  std::string text;            // without the token that ended it
  bool truncated = false;
  double verified = 0;  // as the reward program gave it
  double reward = 0;
  double advantage = 0;
  // [tokens] each, where they are known:
  std::vector<float> policy;     // by the weights at hand
  std::vector<float> behavior;   // by the weights that sampled
  std::vector<float> reference;  // by the frozen model
  std::vector<float> gradient;   // d loss / d policy

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
};

/// What to sample.
struct RolloutRequest {
  const Prompt* prompt = nullptr;
  uint64_t seed = 0;
};

/// What sampling took and made.
struct SamplingFigures {
  double seconds = 0;
  int64_t tokens = 0;
  int64_t computed = 0;  // tokens whose keys were computed
  int64_t spared = 0;    // and those that sharing spared
};

/// The generator of a document's rollouts, for prompts of at most `longest_prompt` tokens.
engine::GeneratorOptions generator_options(const Document& document, const ModelContext& context,
                                           int64_t longest_prompt, int64_t answers);

/// Samples all requests, `group` answers to a prompt standing together. Throws Error(interrupted).
std::vector<Rollout> sample_rollouts(device::Device& device, const ModelContext& context,
                                     const model::Adapter* adapter, const Document& document,
                                     std::span<const RolloutRequest> requests, int64_t longest_prompt,
                                     std::string_view phase, Reporter& reporter, SamplingFigures& figures);

/// Rewards of all rollouts, in one batch.
void score_rollouts(reward::RewardProgram& program, std::span<Rollout> rollouts);

/// The reward program of a document.
reward::RewardOptions reward_options(const Document& document);

/// The document's shared_prefix_fanout.
engine::Fanout fanout_of(const Document& document);

}  // namespace retro::run
