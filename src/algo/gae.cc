#include "algo/gae.h"

#include "algo/advantages.h"
#include "base/error.h"

namespace retro::algo {

void gae(double reward, std::span<const double> values, double gamma, double lambda,
         std::span<double> advantages) {
  RETRO_CHECK(values.size() == advantages.size());
  double next_value = 0, next_advantage = 0;
  for (size_t left = values.size(); left > 0; --left) {
    const size_t t = left - 1;
    const double received = left == values.size() ? reward : 0;
    const double delta = received + gamma * next_value - values[t];
    next_advantage = delta + gamma * lambda * next_advantage;
    next_value = values[t];
    advantages[t] = next_advantage;
  }
}

BatchAdvantages critic_advantages(std::span<const int64_t> lengths, std::span<const double> rewards,
                                  std::span<const double> values, double gamma, double lambda) {
  RETRO_CHECK(lengths.size() == rewards.size());
  BatchAdvantages batch;
  batch.advantages.resize(values.size());
  size_t first = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto count = static_cast<size_t>(lengths[i]);
    RETRO_CHECK(first + count <= values.size());
    gae(rewards[i], values.subspan(first, count), gamma, lambda,
        std::span(batch.advantages).subspan(first, count));
    first += count;
  }
  RETRO_CHECK(first == values.size());
  batch.returns.resize(values.size());
  for (size_t t = 0; t < values.size(); ++t) batch.returns[t] = batch.advantages[t] + values[t];
  whiten(batch.advantages);
  return batch;
}

BatchAdvantages reward_advantages(std::span<const int64_t> lengths, std::span<const double> rewards) {
  RETRO_CHECK(lengths.size() == rewards.size());
  std::vector<double> whitened(rewards.begin(), rewards.end());
  whiten(whitened);
  BatchAdvantages batch;
  for (size_t i = 0; i < lengths.size(); ++i) {
    batch.advantages.insert(batch.advantages.end(), static_cast<size_t>(lengths[i]), whitened[i]);
  }
  return batch;
}

}  // namespace retro::algo
