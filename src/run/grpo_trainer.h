// Group-relative policy optimization (Shao et al. 2024) in the form of Dr. GRPO (Liu et al. 2025) with DAPO's
// corrections (Yu et al. 2025), and with sequence ratios GSPO (Zheng et al. 2025).
#pragma once

#include <vector>

#include "algo/advantages.h"
#include "algo/kl_controller.h"
#include "algo/rollout_plan.h"
#include "algo/stall.h"
#include "run/rollout_trainer.h"

namespace retro::run {

class GrpoTrainer final : public RolloutTrainer {
 public:
  GrpoTrainer(const Document& document, const ModelContext& context, RolloutPrompts prompts,
              const LoadedCheckpoint* checkpoint, Reporter& reporter);

 private:
  /// Answers to one prompt.
  struct Group {
    std::vector<Rollout> rollouts;
    algo::GroupAdvantages advantages;

    bool live() const { return advantages.cause == algo::DeadCause::none; }
    std::vector<Rollout*> live_rollouts();
  };

  void update(Metrics& metrics) override;
  int64_t answers_per_step() const override { return document_.grpo.group_size; }
  bool stalled() override;

  /// All that are sampled for the update, replacements included, in order.
  std::vector<Group> sample(int64_t& position);
  void sample_groups(int64_t count, int64_t& position, std::vector<Group>& groups);
  /// The update's groups: those that can be trained first.
  std::vector<Group*> choose(std::vector<Group>& groups) const;
  /// Steps over the chosen groups; returns the sums over all of them.
  algo::PolicySums train(const std::vector<Group*>& chosen, double kl_coefficient);
  void prepare_behavior(const std::vector<Group*>& chosen);
  void observe(std::vector<Group>& groups, const std::vector<Group*>& chosen);
  void observe_outcome(std::vector<Group>& groups, const std::vector<Group*>& chosen);
  void group_metrics(const std::vector<Group>& groups, const std::vector<Group*>& chosen, Metrics& metrics);

  const GrpoSection& grpo_;
  data::PromptOrder order_;
  algo::KlController kl_;
  algo::StallWatch stall_;
  engine::Fanout fanout_;
  bool stalled_ = false;
};

}  // namespace retro::run
