// From rewards to advantages. Sums run in the order of the members, in double.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace retro::algo {

enum class Baseline {
  mean,           ///< of the group's live members
  leave_one_out,  ///< of the other live members (RLOO, Ahmadian et al. 2024)
};

/// Why a group is not trained on.
enum class DeadCause {
  none,       ///< it is
  truncated,  ///< every answer was cut, or masking the cut ones left fewer than two
  no_spread,  ///< the live members' rewards are all alike
  unscored,   ///< a judge failed
};

struct GroupAdvantages {
  std::vector<double> advantages;  ///< [members]; 0 for those that are not live
  std::vector<uint8_t> live;       ///< [members]; all 0 where the group is dead
  DeadCause cause = DeadCause::none;

  int64_t live_members() const;
};

/// Advantages within a group as Dr. GRPO takes them (Liu et al. 2025): A_i = r_i - baseline, not divided by
/// the standard deviation. With `mask_truncated` cut members are no members: their reward changes no other's
/// advantage. `rewards` and `truncated` are [members].
GroupAdvantages group_advantages(std::span<const double> rewards, std::span<const uint8_t> truncated,
                                 bool mask_truncated, Baseline baseline);

/// DAPO's soft penalty (Yu et al. 2025), to be subtracted from the reward: 0 up to max_new_tokens -
/// buffer_tokens, from there linear to max_penalty at max_new_tokens.
struct OverlongPenalty {
  int64_t max_new_tokens = 0;
  int64_t buffer_tokens = 1;
  double max_penalty = 0;

  double at(int64_t length) const;
};

/// (a - mean) / sqrt(variance + 1e-8), in place; the variance is that of the population. All alike give 0.
void whiten(std::span<double> values);

}  // namespace retro::algo
