#include "run/rollout_bench.h"

#include <algorithm>
#include <cmath>

#include "algo/rollout_plan.h"
#include "base/error.h"
#include "run/rollouts.h"

namespace retro::run {

double RewardSample::mean() const {
  double sum = 0;
  for (const double reward : rewards) sum += reward;
  return sum / static_cast<double>(rewards.size());
}

double RewardSample::standard_error() const {
  const auto count = static_cast<double>(rewards.size());
  if (rewards.size() < 2) return 0;
  const double middle = mean();
  double squares = 0;
  for (const double reward : rewards) squares += (reward - middle) * (reward - middle);
  return std::sqrt(squares / (count - 1) / count);
}

double RewardSample::quantile(double share) const {
  std::vector<double> sorted = rewards;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

RewardSample sample_rewards(const Document& document, const ModelContext& context, device::Device& device,
                            const model::Adapter* adapter, std::span<const Prompt> prompts,
                            reward::RewardProgram& program, std::string_view phase, Reporter& reporter) {
  RETRO_CHECK(!prompts.empty());
  std::vector<RolloutRequest> requests;
  size_t longest = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests.push_back(
        {&prompts[i], algo::evaluation_seed(document.rollout().sampling.seed, static_cast<int64_t>(i))});
    longest = std::max(longest, prompts[i].tokens.size());
  }
  SamplingFigures figures;
  std::vector<Rollout> rollouts = sample_rollouts(device, context, adapter, document, requests,
                                                  static_cast<int64_t>(longest), phase, reporter, figures);
  score_rollouts(program, rollouts);
  RewardSample sample;
  const auto count = static_cast<double>(rollouts.size());
  for (const Rollout& rollout : rollouts) {
    sample.rewards.push_back(rollout.reward);
    sample.length_mean += static_cast<double>(rollout.length()) / count;
    sample.truncated_fraction += (rollout.truncated ? 1 : 0) / count;
  }
  return sample;
}

}  // namespace retro::run
