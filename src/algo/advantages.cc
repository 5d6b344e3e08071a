#include "algo/advantages.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace retro::algo {

int64_t GroupAdvantages::live_members() const {
  return std::count_if(live.begin(), live.end(), [](uint8_t one) { return one != 0; });
}

GroupAdvantages group_advantages(std::span<const double> rewards, std::span<const uint8_t> truncated,
                                 bool mask_truncated, Baseline baseline) {
  RETRO_CHECK(rewards.size() == truncated.size());
  GroupAdvantages group;
  group.advantages.assign(rewards.size(), 0.0);
  group.live.assign(rewards.size(), 0);
  int64_t live = 0, cut = 0;
  double sum = 0, least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < rewards.size(); ++i) {
    cut += truncated[i] != 0 ? 1 : 0;
    if (mask_truncated && truncated[i] != 0) continue;
    group.live[i] = 1;
    ++live;
    sum += rewards[i];
    least = std::min(least, rewards[i]);
    most = std::max(most, rewards[i]);
  }
  if (live < 2 || least == most) {
    const bool all_cut = cut == static_cast<int64_t>(rewards.size());
    group.cause = all_cut || live < 2 ? DeadCause::truncated : DeadCause::no_spread;
    group.live.assign(rewards.size(), 0);
    return group;
  }
  const auto count = static_cast<double>(live);
  for (size_t i = 0; i < rewards.size(); ++i) {
    if (group.live[i] == 0) continue;
    const double others = baseline == Baseline::mean ? sum / count : (sum - rewards[i]) / (count - 1);
    group.advantages[i] = rewards[i] - others;
  }
  return group;
}

double OverlongPenalty::at(int64_t length) const {
  const int64_t over = length - (max_new_tokens - buffer_tokens);
  if (over <= 0) return 0;
  return max_penalty * static_cast<double>(std::min(over, buffer_tokens)) /
         static_cast<double>(buffer_tokens);
}

void whiten(std::span<double> values) {
  constexpr double kEpsilon = 1e-8;
  if (values.empty()) return;
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double scale = 1 / std::sqrt(squares / count + kEpsilon);
  for (double& value : values) value = (value - mean) * scale;
}

}  // namespace retro::algo
