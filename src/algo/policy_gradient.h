// Clipped surrogates: from log-probabilities of sampled tokens to their gradients.
//
// Each function gives a completion's share of a step's loss and d loss / d logprob = -w_t / denominator,
// where w_t is the weight of token t. Ratios are taken from the log-probabilities of the very forward pass
// whose backward pass gets the gradient.
#pragma once

#include <cstdint>
#include <span>

namespace retro::algo {

/// One completion. All spans are [tokens]; `reference` is empty where there is no KL to a reference.
struct CompletionLogprobs {
  std::span<const float> policy;     ///< by the weights that are trained
  std::span<const float> behavior;   ///< by the weights that sampled
  std::span<const float> reference;  ///< by the frozen model
  std::span<float> gradient;         ///< out: d loss / d policy
};

/// Sums over completions, for the metrics of a step or an update.
struct PolicySums {
  int64_t tokens = 0;
  int64_t clipped = 0;          ///< tokens whose surrogate has no gradient
  int64_t capped = 0;           ///< tokens whose reference/policy ratio was capped
  double surrogate_loss = 0;    ///< as it stands in the loss, over its denominator
  double kl_loss = 0;           ///< coefficient and denominator included
  double kl = 0;                ///< Σ of the k3 estimate, not divided
  double negative_logprob = 0;  ///< Σ -log π

  double total_loss() const { return surrogate_loss + kl_loss; }
  double kl_mean() const { return mean(kl); }
  double clip_fraction() const { return mean(static_cast<double>(clipped)); }
  /// The entropy's estimate from the sampled tokens.
  double entropy() const { return mean(negative_logprob); }

  void add(const PolicySums& other);

 private:
  double mean(double sum) const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
};

enum class RatioLevel {
  token,     ///< r_t = π/π_old of each token
  sequence,  ///< s, the geometric mean of the token ratios, for all of them (GSPO, Zheng et al. 2025)
};

struct GrpoObjective {
  double clip_low = 0.2;   ///< a ratio below 1 - clip_low has no gradient where A < 0
  double clip_high = 0.2;  ///< one above 1 + clip_high none where A > 0
  RatioLevel level = RatioLevel::token;
  double kl_coefficient = 0;
  double denominator = 1;  ///< live members × max_new_tokens
};

/// w_t = A·r_t·[not clipped] + k·(ref/π - 1): the clipped surrogate and the k3 estimate of the KL to the
/// reference (Schulman 2020), ref/π - log(ref/π) - 1, with ref/π capped at e^10. At sequence level the loss
/// of a completion is that of its tokens with r_t = s, so each token's weight is A·s.
void grpo_gradient(const CompletionLogprobs& completion, double advantage, const GrpoObjective& objective,
                   PolicySums& sums);

struct PpoObjective {
  double clip_range = 0.2;
  double kl_coefficient = 0;
  int64_t completions = 1;  ///< of the step; each counts by the mean over its tokens
};

/// w_t = A_t·r_t·[not clipped] + k·(1 - r_t): the clipped surrogate (Schulman et al. 2017) and the k3
/// estimate of the KL to the behaviour policy, (r - 1) - log r. `advantages` is [tokens].
void ppo_gradient(const CompletionLogprobs& completion, std::span<const double> advantages,
                  const PpoObjective& objective, PolicySums& sums);

/// How far log-probabilities as generation computed them lie from those of the training forward, in nats.
struct SamplingGap {
  int64_t tokens = 0;
  double sum = 0;
  double max = 0;

  void add(std::span<const float> sampled, std::span<const float> rescored);
  double mean() const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }
};

}  // namespace retro::algo
