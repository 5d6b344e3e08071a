#include "run/ppo_trainer.h"

#include <fmt/format.h>

#include <algorithm>

namespace retro::run {

namespace {

/// Every answer has its own copy of its prompt.
constexpr engine::Fanout kWhole{engine::Fanout::Kind::off, 0};

algo::FeatureType feature_type(RetainedType type) {
  return type == RetainedType::f32   ? algo::FeatureType::f32
         : type == RetainedType::f16 ? algo::FeatureType::f16
                                     : algo::FeatureType::bf16;
}

std::vector<int64_t> lengths_of(std::span<const Rollout> rollouts) {
  std::vector<int64_t> lengths;
  for (const Rollout& rollout : rollouts) lengths.push_back(rollout.length());
  return lengths;
}

}  // namespace

PpoTrainer::PpoTrainer(const Document& document, const ModelContext& context, RolloutPrompts prompts,
                       const LoadedCheckpoint* checkpoint, Reporter& reporter)
    : RolloutTrainer(document, context, std::move(prompts), checkpoint, reporter),
      ppo_(document.ppo),
      order_(prompts_.training.size(), false, document.training.seed) {
  const int64_t width = context.model.hyperparameters().embedding;
  if (ppo_.critic.enabled && checkpoint != nullptr) {
    critic_.emplace(width, ppo_.critic.value_lr, state_.critic);
  } else if (ppo_.critic.enabled) {
    critic_.emplace(width, ppo_.critic.value_lr);
  }
}

algo::BatchAdvantages PpoTrainer::advantages(std::span<Rollout> rollouts, Metrics& metrics) {
  std::vector<Rollout*> all;
  std::vector<double> rewards;
  for (Rollout& rollout : rollouts) {
    all.push_back(&rollout);
    rewards.push_back(rollout.reward);
  }
  const std::vector<int64_t> lengths = lengths_of(rollouts);
  const bool rescored = document_.training.behavior_logprobs == BehaviorLogprobs::rescored;
  std::optional<algo::FeatureRows> features;
  if (critic_)
    features.emplace(context_.model.hyperparameters().embedding, feature_type(ppo_.critic.feature_dtype));
  if (critic_ || rescored) {
    timed(Phase::behavior_scoring,
          [&] { score(trainer_engine(), all, &Rollout::behavior, kWhole, features ? &*features : nullptr); });
  }
  if (!rescored) {
    for (Rollout& rollout : rollouts) rollout.behavior = rollout.sampled;
  }
  if (!critic_) return algo::reward_advantages(lengths, rewards);
  algo::BatchAdvantages result = algo::critic_advantages(lengths, rewards, critic_->values(*features),
                                                         ppo_.critic.gamma, ppo_.critic.gae_lambda);
  metrics["policy/value_loss"] = critic_->fit(*features, result.returns, ppo_.critic.value_epochs);
  return result;
}

algo::PolicySums PpoTrainer::train(std::span<Rollout> rollouts, const algo::BatchAdvantages& advantages) {
  std::vector<int64_t> totals;
  std::vector<size_t> first;
  size_t tokens = 0;
  for (const Rollout& rollout : rollouts) {
    totals.push_back(rollout.length() + static_cast<int64_t>(rollout.prompt->tokens.size()));
    first.push_back(tokens);
    tokens += rollout.tokens.size();
  }
  algo::PolicySums sums;
  const int64_t begin = state_.step;
  const auto count = static_cast<int64_t>(rollouts.size());
  for (int64_t epoch = 0; epoch < ppo_.ppo_epochs; ++epoch) {
    const auto order = algo::step_order(rollouts.size(), document_.training.seed, state_.update, epoch);
    for (const auto& packed : algo::pack_completions(totals, order, document_.training.ctx)) {
      std::vector<Rollout*> together;
      for (const size_t i : packed) together.push_back(&rollouts[i]);
      const algo::PpoObjective objective{ppo_.clip_range, ppo_.kl_coefficient,
                                         static_cast<int64_t>(packed.size())};
      step(together, kWhole, false, [&](Rollout& rollout) {
        const auto i = static_cast<size_t>(&rollout - rollouts.data());
        algo::ppo_gradient({rollout.policy, rollout.behavior, {}, rollout.gradient},
                           std::span(advantages.advantages).subspan(first[i], rollout.tokens.size()),
                           objective, sums);
      });
      state_.step += static_cast<int64_t>(packed.size());
      reporter_.progress(fmt::format("update {}: training", state_.update + 1), state_.step - begin,
                         count * ppo_.ppo_epochs, "answers");
    }
  }
  return sums;
}

void PpoTrainer::observe(std::span<const Rollout> rollouts, const algo::BatchAdvantages& advantages) {
  if (!observed()) return;
  std::span<const double> rest = advantages.advantages;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const auto group = static_cast<int64_t>(i);
    ObservedRollout seen = observe_prompt(rollouts[i], group, 0);
    const auto [least, most] = std::ranges::minmax(rest.first(rollouts[i].tokens.size()));
    if (critic_) {
      seen.advantage_range = {least, most};
    } else {
      seen.advantage = least;
    }
    observer_.rollout(seen);
    observer_.selection({state_.update, group, {0}, SkipReason::none, rollouts[i].reward, 0});
    rest = rest.subspan(rollouts[i].tokens.size());
  }
}

void PpoTrainer::update(Metrics& metrics) {
  std::vector<RolloutRequest> requests;
  for (int64_t i = 0; i < ppo_.rollout_batch_size; ++i) {
    const int64_t position = state_.position + i;
    requests.push_back(
        {&prompts_.training[order_.at(position)], algo::completion_seed(ppo_.sampling.seed, position, 0)});
  }
  std::vector<Rollout> rollouts = roll_out(requests);
  score_rewards(rollouts);
  const algo::BatchAdvantages batch = advantages(rollouts, metrics);
  observe(rollouts, batch);
  const algo::PolicySums sums = train(rollouts, batch);
  for (size_t i = 0; i < rollouts.size(); ++i)
    observer_.outcome(state_.update, static_cast<int64_t>(i), true);
  state_.position += ppo_.rollout_batch_size;
  if (critic_) state_.critic = critic_->state();
  sampling_metrics(rollouts, metrics);
  gap_metrics(rollouts, metrics);
  policy_metrics(sums, metrics);
}

}  // namespace retro::run
