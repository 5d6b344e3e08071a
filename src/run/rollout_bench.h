// Rewards of a model's answers, without training: what `bench` shows of ppo and grpo.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "model/adapter.h"
#include "reward/reward_program.h"
#include "run/document.h"
#include "run/model_context.h"
#include "run/reporter.h"
#include "run/rollout_data.h"

namespace retro::run {

/// One sampled answer to each prompt, scored.
struct RewardSample {
  std::vector<double> rewards;  // in the prompts' order
  double length_mean = 0;       // tokens
  double truncated_fraction = 0;

  double mean() const;
  /// Of the mean: the sample's standard deviation over the root of its size; 0 for one prompt.
  double standard_error() const;
  /// The reward below which a share `share` of the answers lies; 0 is the least, 1 the most.
  double quantile(double share) const;
};

/// The answers of an evaluation: the document's sampling, seeded from (seed, index). Throws
/// Error(interrupted).
RewardSample sample_rewards(const Document& document, const ModelContext& context, device::Device& device,
                            const model::Adapter* adapter, std::span<const Prompt> prompts,
                            reward::RewardProgram& program, std::string_view phase, Reporter& reporter);

}  // namespace retro::run
