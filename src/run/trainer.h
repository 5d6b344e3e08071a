// One run in memory: what `train` drives.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "algo/schedule.h"
#include "algo/sft.h"
#include "engine/engine.h"
#include "engine/optimizer.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "run/setup.h"
#include "run/train.h"
#include "run/train_state.h"
#include "run/training_data.h"
#include "run/training_run.h"

namespace retro::run {

class Trainer {
 public:
  /// Opens and checks everything, what will be written too. `records` hold what the document names.
  /// `checkpoint`, where it is no nullptr, is taken up; one of another run is refused, naming the field that
  /// differs.
  Trainer(const Document& document, const ModelContext& context, RunRecords records,
          const LoadedCheckpoint* checkpoint, Reporter& reporter);

  /// Runs to the end or an interrupt.
  TrainResult run();

 private:
  using Clock = std::chrono::steady_clock;

  void make_engine(const LoadedCheckpoint* checkpoint);
  void restore(const LoadedCheckpoint& checkpoint);
  /// False when the run was interrupted.
  bool run_epoch();
  void run_step(const algo::SftStep& step);
  void report_epoch();
  /// Evaluates where that is due and moves to the next epoch; false when interrupted before.
  bool close_epoch();
  void run_evaluation();
  bool out_of_patience() const;
  /// A checkpoint of now, and the adapter so far; neither when this process made no step.
  TrainResult stop();
  void save_step();
  TrainResult result(bool interrupted);

  const Document& document_;
  Reporter& reporter_;
  RunRecords records_;
  Workload workload_;
  TrainingRun run_;
  std::unique_ptr<engine::Engine> engine_;
  int64_t total_steps_ = 0;
  algo::SftBatch batch_;
  TrainState state_;
  double seconds_ = 0;        // in steps, of this process
  int64_t timed_tokens_ = 0;  // tokens run in them
};

}  // namespace retro::run
