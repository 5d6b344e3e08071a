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

  void plan_schedule();
  void sign();
  void check_resumable(const LoadedCheckpoint& checkpoint) const;
  void check_output() const;
  void make_engine(const LoadedCheckpoint* checkpoint);
  void restore(const LoadedCheckpoint& checkpoint);
  void open_logs(bool resumed);
  /// False when the run was interrupted.
  bool run_epoch();
  void run_step(const algo::SftStep& step);
  /// Says where a run that failed can be taken up; empty where it cannot.
  std::string last_checkpoint() const;
  void report_epoch();
  /// Evaluates where that is due and moves to the next epoch; false when interrupted before.
  bool close_epoch();
  void run_evaluation();
  bool out_of_patience() const;
  /// A checkpoint of now, and the adapter so far; neither when this process made no step.
  TrainResult stop();
  void save_step();
  CheckpointContent checkpoint_content();
  void write_adapter(const std::filesystem::path& path) const;
  TrainResult result(bool interrupted);

  const Document& document_;
  const ModelContext& context_;
  Reporter& reporter_;
  RunRecords records_;
  Workload workload_;
  std::string fingerprint_;
  Signature signature_;
  model::Adapter adapter_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Optimizer> optimizer_;
  algo::Schedule schedule_;
  int64_t total_steps_ = 0;
  algo::SftBatch batch_;
  TrainState state_;
  MetricsLog metrics_;
  double seconds_ = 0;        // in steps, of this process
  int64_t timed_tokens_ = 0;  // tokens run in them
};

}  // namespace retro::run
