// Where a run that samples answers stands between two updates, as a checkpoint keeps it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "algo/critic.h"
#include "algo/kl_controller.h"
#include "algo/stall.h"
#include "run/train_state.h"

namespace retro::run {

struct RolloutState {
  AdapterShape adapter;
  int64_t update = 0;           // updates that are done
  int64_t step = 0;             // nominal steps of the schedule: dropped groups count
  int64_t optimizer_steps = 0;  // that changed weights
  int64_t position = 0;         // prompts taken from the endless sequence
  int64_t tokens = 0;           // sampled in all
  algo::KlState kl;
  algo::StallState stall;
  algo::CriticState critic;
  bool evaluation_due = false;  // the update's steps are done, its evaluation is not
  std::optional<double> best_reward;
  std::optional<double> last_evaluation;
  int64_t best_step = 0;
  int64_t evaluations_without_gain = 0;
  std::map<std::string, double> metrics;  // of the last update

  /// Doubles keep every bit.
  std::string to_json() const;
  /// Throws Error(data) when the text is not what to_json writes.
  static RolloutState from_json(const std::string& text);
};

}  // namespace retro::run
