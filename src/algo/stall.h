// Updates without anything to train on, and when a run of them ends the run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algo/advantages.h"

namespace retro::algo {

/// What a checkpoint holds of the watch: the stalled updates in a row, and the causes of their groups.
struct StallState {
  int64_t updates = 0;
  std::array<int64_t, 3> groups{};  ///< truncated, no spread, unscored
};

/// Counts stalled updates: those without a live group.
class StallWatch {
 public:
  /// `max_updates` in a row end the run; 0: none do.
  explicit StallWatch(int64_t max_updates, StallState state = {});

  /// Takes the causes of an update's groups, all that were sampled for it. True when the run is to end.
  bool close_update(std::span<const DeadCause> groups);

  /// The updates in a row, what share of their groups had which cause, and the keys to change; `section` is
  /// that of the algorithm.
  std::string report(std::string_view section, int64_t max_new_tokens) const;

  const StallState& state() const { return state_; }

 private:
  int64_t max_updates_;
  StallState state_;
};

}  // namespace retro::algo
