// Runs that sample answers, have them scored and learn from the scores: what GRPO and PPO have in common.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algo/policy_gradient.h"
#include "engine/trees.h"
#include "run/observe.h"
#include "run/probe.h"
#include "run/rollout_data.h"
#include "run/rollout_state.h"
#include "run/rollouts.h"
#include "run/train.h"
#include "run/training_run.h"

namespace retro::run {

class RolloutTrainer {
 public:
  /// Checks what will be written, the reward program and the schedule, and refuses a checkpoint of another
  /// run.
  RolloutTrainer(const Document& document, const ModelContext& context, RolloutPrompts prompts,
                 const LoadedCheckpoint* checkpoint, Reporter& reporter);
  virtual ~RolloutTrainer() = default;

  /// Checks memory and makes adapter, optimizer and logs; to be called once, before run().
  void prepare(const LoadedCheckpoint* checkpoint, Probe* probe);

  /// Runs to the end or an interrupt.
  TrainResult run();

 protected:
  using Clock = std::chrono::steady_clock;
  using Metrics = std::map<std::string, double>;

  /// One update: samples, scores, steps, and advances the state; fills `metrics`. Throws Error(interrupted)
  /// before its first step, with the state as it was.
  virtual void update(Metrics& metrics) = 0;
  /// Answers that one step trains together, to one prompt or to prompts of their own.
  virtual int64_t answers_per_step() const = 0;
  /// True where the run is to stop for want of signal; it says why.
  virtual bool stalled() { return false; }

  /// Samples and has scored; counts time.
  std::vector<Rollout> roll_out(std::span<const RolloutRequest> requests);
  void score_rewards(std::span<Rollout> rollouts);

  /// Log-probabilities of the rollouts by the weights as they are into `to`, and with `features` the hidden
  /// rows of their tokens, appended in order.
  void score(engine::Engine& engine, std::span<Rollout* const> rollouts, std::vector<float> Rollout::*to,
             const engine::Fanout& fanout, algo::FeatureRows* features = nullptr);
  void score_reference(std::span<Rollout* const> rollouts, const engine::Fanout& fanout);

  /// One optimizer step over rollouts; `objective` gives each its gradient, once its policy is known. With
  /// `behave` the policy of this forward pass becomes the behaviour first.
  void step(std::span<Rollout* const> rollouts, const engine::Fanout& fanout, bool behave,
            const std::function<void(Rollout&)>& objective);
  /// The engine of steps, made where it is not there.
  engine::Engine& trainer_engine();
  /// Gives its memory back.
  void release_engine() { engine_.reset(); }

  void sampling_metrics(std::span<const Rollout> rollouts, Metrics& metrics) const;
  void policy_metrics(const algo::PolicySums& sums, Metrics& metrics) const;
  /// The difference between generation's log-probabilities and the training forward's, where both are known.
  void gap_metrics(std::span<const Rollout> rollouts, Metrics& metrics);

  /// Whether this update's rollouts are to be observed.
  bool observed() const { return observer_.wants(state_.update); }
  /// A rollout's prompt and what all algorithms know of it.
  ObservedRollout observe_prompt(const Rollout& rollout, int64_t group, int64_t member);

  template <typename Work>
  auto timed(Phase phase, Work&& work) {
    struct Add {
      RolloutTrainer& trainer;
      Phase phase;
      Clock::time_point start = Clock::now();
      ~Add() {
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        trainer.seconds_[static_cast<size_t>(phase)] += seconds;
        trainer.probe_->end(phase, seconds);
      }
    };
    probe_->begin(phase);
    const Add add{*this, phase};
    return work();
  }

  const Document& document_;
  const ModelContext& context_;
  Reporter& reporter_;
  RolloutPrompts prompts_;
  TrainingRun run_;
  RolloutState state_;
  double last_gradient_norm_ = 0;
  double last_lr_ = 0;
  Observer observer_;

 private:
  void open_observer(bool resumed);
  void load_reference(const LoadedCheckpoint* checkpoint);
  engine::EngineOptions engine_options_of(bool train) const;
  void check_memory(const model::AdapterLayout& layout);
  void run_update();
  void report(const Metrics& metrics, double seconds);
  void evaluate();
  bool out_of_patience() const;
  void save(bool best);
  TrainResult result(bool interrupted);

  Probe silent_;
  Probe* probe_ = &silent_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<reward::RewardProgram> rewards_;
  std::unique_ptr<ModelContext> reference_model_;    // of [reference]
  std::optional<model::Adapter> reference_adapter_;  // the adapter as the run began, where it had one
  std::array<double, 5> seconds_{};                  // of the update, by phase
  SamplingFigures figures_;                          // of the update
  int64_t update_steps_ = 0;                         // of the update, that changed weights
  bool warned_of_gap_ = false;
  double total_seconds_ = 0;
  int64_t total_tokens_ = 0;
};

/// The trainer of a document's algorithm.
std::unique_ptr<RolloutTrainer> make_rollout_trainer(const Document& document, const ModelContext& context,
                                                     RolloutPrompts prompts,
                                                     const LoadedCheckpoint* checkpoint, Reporter& reporter,
                                                     Probe* probe = nullptr);

}  // namespace retro::run
