// Figures of an update's answers: rewards, lengths, groups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace retro::algo {

struct SampledAnswer {
  int64_t group = 0;             ///< answers of a group stand together
  double reward = 0;             ///< as trained on
  double verifiable = 0;         ///< as the reward program gave it
  std::optional<double> judged;  ///< the judge's part
  int64_t tokens = 0;
  bool truncated = false;
  bool live = false;     ///< trained on
  double advantage = 0;  ///< of a live one; with a critic the mean of its tokens' absolute values
};

using Metric = std::pair<std::string_view, double>;

/// `reward/*`, `completions/*` and `batch/*` over all answers that were sampled for an update (replaced ones
/// too). Deviations are those of the population. `batch/groups_sampled_fraction` is sampled over
/// `groups_wanted`, 1 where none was replaced; the figures of groups are left out where `groups_wanted` is 0
/// (ppo). Empty for no answers.
std::vector<Metric> rollout_metrics(std::span<const SampledAnswer> answers, int64_t groups_wanted);

}  // namespace retro::algo
