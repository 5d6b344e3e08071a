// The coefficient of GRPO's KL term over the updates.
#pragma once

#include <cstdint>
#include <optional>

namespace retro::algo {

/// `[grpo.kl_schedule]`.
struct KlSchedule {
  double coefficient = 0;        ///< where warm-up ends and control begins
  int64_t warmup_updates = 0;    ///< linear rise: (u + 1)/warmup_updates of it in update u
  std::optional<double> target;  ///< of the mean KL per token; none keeps the coefficient
};

/// What a checkpoint holds of it.
struct KlState {
  int64_t updates = 0;
  double coefficient = 0;
};

class KlController {
 public:
  explicit KlController(const KlSchedule& schedule);
  KlController(const KlSchedule& schedule, const KlState& state);

  /// k of the update that comes.
  double coefficient() const;
  /// Closes an update that measured `kl` (none: it trained nothing). Once warm, k ← k·(1 + 0.1·clip(kl/target
  /// - 1, ±0.2)) (Ziegler et al. 2019).
  void close_update(std::optional<double> kl);

  const KlState& state() const { return state_; }

 private:
  KlSchedule schedule_;
  KlState state_;
};

}  // namespace retro::algo
