#include "algo/kl_controller.h"

#include <algorithm>

namespace retro::algo {

KlController::KlController(const KlSchedule& schedule)
    : KlController(schedule, KlState{0, schedule.coefficient}) {}

KlController::KlController(const KlSchedule& schedule, const KlState& state)
    : schedule_(schedule), state_(state) {}

double KlController::coefficient() const {
  if (state_.updates >= schedule_.warmup_updates) return state_.coefficient;
  return state_.coefficient * static_cast<double>(state_.updates + 1) /
         static_cast<double>(schedule_.warmup_updates);
}

void KlController::close_update(std::optional<double> kl) {
  constexpr double kGain = 0.1, kMostError = 0.2;
  const bool warm = state_.updates >= schedule_.warmup_updates;
  ++state_.updates;
  if (!warm || !schedule_.target || !kl) return;
  const double error = std::clamp(*kl / *schedule_.target - 1, -kMostError, kMostError);
  state_.coefficient *= 1 + kGain * error;
}

}  // namespace retro::algo
