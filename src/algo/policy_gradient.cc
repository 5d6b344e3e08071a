#include "algo/policy_gradient.h"

#include <algorithm>
#include <cmath>

#include "base/det_math.h"
#include "base/error.h"

namespace retro::algo {

namespace {

/// min(r·A, clip(r)·A) and d/dr·r of it.
struct Surrogate {
  double value = 0;
  double weight = 0;  // A·r, 0 where clipped
  bool clipped = false;
};

Surrogate surrogate(double ratio, double advantage, double low, double high) {
  if (advantage > 0 && ratio > 1 + high) return {(1 + high) * advantage, 0, true};
  if (advantage < 0 && ratio < 1 - low) return {(1 - low) * advantage, 0, true};
  return {ratio * advantage, ratio * advantage, false};
}

double log_ratio(const CompletionLogprobs& completion, size_t t) {
  return static_cast<double>(completion.policy[t]) - static_cast<double>(completion.behavior[t]);
}

/// exp of the mean log-ratio.
double sequence_ratio(const CompletionLogprobs& completion) {
  double sum = 0;
  for (size_t t = 0; t < completion.policy.size(); ++t) sum += log_ratio(completion, t);
  return det_exp(sum / static_cast<double>(completion.policy.size()));
}

void check_shapes(const CompletionLogprobs& completion) {
  const size_t tokens = completion.policy.size();
  RETRO_CHECK(completion.behavior.size() == tokens && completion.gradient.size() == tokens);
  RETRO_CHECK(completion.reference.empty() || completion.reference.size() == tokens);
}

}  // namespace

void PolicySums::add(const PolicySums& other) {
  tokens += other.tokens;
  clipped += other.clipped;
  capped += other.capped;
  surrogate_loss += other.surrogate_loss;
  kl_loss += other.kl_loss;
  kl += other.kl;
  negative_logprob += other.negative_logprob;
}

void grpo_gradient(const CompletionLogprobs& completion, double advantage, const GrpoObjective& objective,
                   PolicySums& sums) {
  constexpr double kLargestLogRatio = 10;
  check_shapes(completion);
  const size_t tokens = completion.policy.size();
  const bool by_sequence = objective.level == RatioLevel::sequence;
  const double whole = by_sequence && tokens > 0 ? sequence_ratio(completion) : 1;
  for (size_t t = 0; t < tokens; ++t) {
    const double ratio = by_sequence ? whole : det_exp(log_ratio(completion, t));
    const Surrogate part = surrogate(ratio, advantage, objective.clip_low, objective.clip_high);
    double weight = part.weight;
    if (!completion.reference.empty()) {
      const double gap =
          static_cast<double>(completion.reference[t]) - static_cast<double>(completion.policy[t]);
      const bool capped = gap > kLargestLogRatio;
      const double to_reference = det_exp(capped ? kLargestLogRatio : gap);
      const double kl = to_reference - gap - 1;
      weight += objective.kl_coefficient * (to_reference - 1);
      sums.kl += kl;
      sums.kl_loss += objective.kl_coefficient * kl / objective.denominator;
      sums.capped += capped ? 1 : 0;
    }
    completion.gradient[t] = static_cast<float>(-weight / objective.denominator);
    sums.surrogate_loss -= part.value / objective.denominator;
    sums.clipped += part.clipped ? 1 : 0;
    sums.negative_logprob -= static_cast<double>(completion.policy[t]);
  }
  sums.tokens += static_cast<int64_t>(tokens);
}

void ppo_gradient(const CompletionLogprobs& completion, std::span<const double> advantages,
                  const PpoObjective& objective, PolicySums& sums) {
  check_shapes(completion);
  const size_t tokens = completion.policy.size();
  RETRO_CHECK(advantages.size() == tokens);
  const double denominator = static_cast<double>(tokens) * static_cast<double>(objective.completions);
  for (size_t t = 0; t < tokens; ++t) {
    const double log_r = log_ratio(completion, t);
    const double ratio = det_exp(log_r);
    const Surrogate part = surrogate(ratio, advantages[t], objective.clip_range, objective.clip_range);
    const double kl = (ratio - 1) - log_r;
    const double weight = part.weight + objective.kl_coefficient * (1 - ratio);
    completion.gradient[t] = static_cast<float>(-weight / denominator);
    sums.surrogate_loss -= part.value / denominator;
    sums.kl += kl;
    sums.kl_loss += objective.kl_coefficient * kl / denominator;
    sums.clipped += part.clipped ? 1 : 0;
    sums.negative_logprob -= static_cast<double>(completion.policy[t]);
  }
  sums.tokens += static_cast<int64_t>(tokens);
}

void SamplingGap::add(std::span<const float> sampled, std::span<const float> rescored) {
  RETRO_CHECK(sampled.size() == rescored.size());
  for (size_t t = 0; t < sampled.size(); ++t) {
    const double gap = std::abs(static_cast<double>(sampled[t]) - static_cast<double>(rescored[t]));
    sum += gap;
    max = std::max(max, gap);
  }
  tokens += static_cast<int64_t>(sampled.size());
}

}  // namespace retro::algo
