// What every training run has, whatever its algorithm: the signed document, the adapter and its optimizer,
// where results are written, and checkpoints.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algo/schedule.h"
#include "engine/optimizer.h"
#include "model/adapter.h"
#include "run/checkpoint.h"
#include "run/metrics.h"
#include "run/probe.h"
#include "run/setup.h"
#include "run/train_state.h"

namespace retro::run {

class TrainingRun {
 public:
  /// Refuses an output that could not be written at the end of the run.
  TrainingRun(const Document& document, const ModelContext& context, Reporter& reporter);

  /// Hashes the model; `content` are the data's fingerprints by name.
  void sign(const std::vector<std::pair<std::string, std::string>>& content);
  /// Refuses a checkpoint of another run, naming what differs; says what may differ and does.
  void check_resumable(const LoadedCheckpoint& checkpoint) const;
  /// The rates of `total_steps` steps. Refuses a warm-up that is no shorter.
  void plan_schedule(int64_t total_steps);

  /// The adapter's layout: of the checkpoint (`shape` as its state says), of lora.init_adapter, which is read
  /// once, or as the document says.
  model::AdapterLayout layout(const LoadedCheckpoint* checkpoint, const AdapterShape& shape);
  /// Makes adapter, device and optimizer, once memory was found to be enough.
  void make(model::AdapterLayout layout, Probe* probe = nullptr);
  /// The checkpoint's weights and moments, after `optimizer_steps` steps.
  void restore(const LoadedCheckpoint& checkpoint, int64_t optimizer_steps);
  /// `step`: of the resumed checkpoint; none for a new run.
  void open_logs(std::optional<int64_t> step);

  /// One step of the optimizer; returns the gradient's norm. What fails is told with the step and the last
  /// checkpoint.
  double update_weights(std::span<const float> gradient, double lr, int64_t step);
  /// Says where a run that failed can be taken up; empty where it cannot.
  std::string last_checkpoint() const;

  /// The shape of the adapter, for the state.
  AdapterShape adapter_shape() const;
  CheckpointContent checkpoint_content(int64_t step, std::string state_json);
  void save_step(const CheckpointContent& content);
  void save_best(const CheckpointContent& content);
  void write_adapter(const std::filesystem::path& path, int64_t step) const;

  const Document& document;
  const ModelContext& context;
  Reporter& reporter;
  std::string fingerprint;
  Signature signature;
  bool given = false;  // the adapter is lora.init_adapter's
  model::Adapter adapter;
  std::unique_ptr<device::Device> device;
  std::unique_ptr<engine::Optimizer> optimizer;
  algo::Schedule schedule;
  MetricsLog metrics;
};

}  // namespace retro::run
