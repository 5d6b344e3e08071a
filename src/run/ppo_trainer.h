// Proximal policy optimization (Schulman et al. 2017) with a linear critic on the final hidden state.
#pragma once

#include <optional>
#include <vector>

#include "algo/critic.h"
#include "algo/gae.h"
#include "algo/rollout_plan.h"
#include "run/rollout_trainer.h"

namespace retro::run {

class PpoTrainer final : public RolloutTrainer {
 public:
  PpoTrainer(const Document& document, const ModelContext& context, RolloutPrompts prompts,
             const LoadedCheckpoint* checkpoint, Reporter& reporter);

 private:
  void update(Metrics& metrics) override;
  /// Whole sequences stand side by side in a step; one is the least.
  int64_t answers_per_step() const override { return 1; }

  /// Advantages of all tokens; fits the critic where there is one.
  algo::BatchAdvantages advantages(std::span<Rollout> rollouts, Metrics& metrics);
  void observe(std::span<const Rollout> rollouts, const algo::BatchAdvantages& advantages);
  algo::PolicySums train(std::span<Rollout> rollouts, const algo::BatchAdvantages& advantages);

  const PpoSection& ppo_;
  data::PromptOrder order_;
  std::optional<algo::Critic> critic_;
  bool told_of_nucleus_ = false;
};

}  // namespace retro::run
