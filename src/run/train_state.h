// Where a run stands, as a checkpoint keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace retro::run {

/// What adapter the weights of a checkpoint are of; `lora.init_adapter` may be gone when they are taken up.
struct AdapterShape {
  double alpha = 0;
  std::string dtype;
  std::vector<std::pair<std::string, int32_t>> ranks;  // target and rank, in the order of the weights
};

struct TrainState {
  AdapterShape adapter;
  int64_t epoch = 0;          // the epoch in progress, from 0
  int64_t step_in_epoch = 0;  // steps of it that are done
  int64_t step = 0;           // optimizer steps in all
  int64_t tokens = 0;         // trained tokens in all
  double epoch_loss = 0;      // sum of −log p over the epoch's trained tokens so far
  int64_t epoch_tokens = 0;
  double last_loss = 0;
  double last_gradient_norm = 0;
  std::optional<double> best_loss;  // of an evaluation
  std::optional<double> last_evaluation;
  int64_t best_step = 0;
  int64_t evaluations_without_gain = 0;
  bool evaluation_due = false;  // the epoch's steps are done, its evaluation is not

  /// Doubles keep every bit.
  std::string to_json() const;
  /// Throws Error(data) when the text is not what to_json writes.
  static TrainState from_json(const std::string& text);
};

}  // namespace retro::run
