// Generalized advantage estimation over the tokens of completions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace retro::algo {

/// Advantages of the tokens of one completion (Schulman et al. 2016) whose only reward comes with its last
/// token: δ_t = r_t + γ·V_{t+1} - V_t, A_t = δ_t + γλ·A_{t+1}, with V = A = 0 behind the last token, cut or
/// not: nothing is bootstrapped. `values` [tokens]: V_t, before token t was sampled. Writes [tokens].
void gae(double reward, std::span<const double> values, double gamma, double lambda,
         std::span<double> advantages);

/// What a batch of completions is trained towards; tokens lie behind one another in the completions' order.
struct BatchAdvantages {
  std::vector<double> advantages;  ///< [tokens], whitened over the batch
  std::vector<double> returns;     ///< [tokens], what the critic is fitted to; empty without one
};

/// With a critic: GAE of each completion, whitened over all tokens. `lengths` [completions]: tokens of each;
/// `rewards` [completions]; `values` [tokens].
BatchAdvantages critic_advantages(std::span<const int64_t> lengths, std::span<const double> rewards,
                                  std::span<const double> values, double gamma, double lambda);

/// Without: the rewards, whitened over the completions, for each of their tokens.
BatchAdvantages reward_advantages(std::span<const int64_t> lengths, std::span<const double> rewards);

}  // namespace retro::algo
