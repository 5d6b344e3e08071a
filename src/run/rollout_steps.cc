// What an update of a RolloutTrainer is made of: sampling, rewards, log-probabilities and steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "run/interrupt.h"
#include "run/rollout_trainer.h"

namespace retro::run {

namespace {

/// Runs `work` over the sets of rollouts whose log-probabilities go to `to`.
template <typename Work>
void over_sets(std::span<Rollout* const> rollouts, std::vector<float> Rollout::*to, bool gradient,
               const engine::Fanout& fanout, int32_t micro_batch, std::vector<float>* features, size_t width,
               const Work& work) {
  std::vector<engine::TreeMember> members;
  size_t offset = 0;
  if (features != nullptr) {
    size_t tokens = 0;
    for (const Rollout* rollout : rollouts) tokens += rollout->tokens.size();
    features->resize(tokens * width);
  }
  for (Rollout* rollout : rollouts) {
    (rollout->*to).resize(rollout->tokens.size());
    if (gradient) rollout->gradient.resize(rollout->tokens.size());
    engine::TreeMember member{rollout->prompt->tokens, rollout->tokens, rollout->*to, {}};
    if (gradient) member.dlogprobs = rollout->gradient;
    if (features != nullptr)
      member.features = std::span(*features).subspan(offset, rollout->tokens.size() * width);
    offset += rollout->tokens.size() * width;
    members.push_back(member);
  }
  engine::TreeSets sets;
  sets.build(members, fanout, micro_batch);
  for (size_t i = 0; i < sets.size(); ++i) work(sets.set(i), sets.members(i));
}

}  // namespace

engine::Engine& RolloutTrainer::trainer_engine() {
  if (!engine_) {
    engine_ = std::make_unique<engine::Engine>(
        *run_.device, &run_.adapter,
        engine::plan_engine(context_.model, &run_.adapter.layout, engine_options_of(true)));
  }
  return *engine_;
}

std::vector<Rollout> RolloutTrainer::roll_out(std::span<const RolloutRequest> requests) {
  return timed(Phase::generation, [&] {
    return sample_rollouts(*run_.device, context_, &run_.adapter, document_, requests, prompts_.longest(),
                           fmt::format("update {}: sampling", state_.update + 1), reporter_, figures_);
  });
}

void RolloutTrainer::score_rewards(std::span<Rollout> rollouts) {
  timed(Phase::reward, [&] { score_rollouts(*rewards_, rollouts); });
}

void RolloutTrainer::score(engine::Engine& engine, std::span<Rollout* const> rollouts,
                           std::vector<float> Rollout::*to, const engine::Fanout& fanout,
                           algo::FeatureRows* features) {
  const auto width = static_cast<size_t>(context_.model.hyperparameters().embedding);
  std::vector<float> rows;
  int64_t done = 0;
  over_sets(rollouts, to, false, fanout, engine.plan().options.micro_batch,
            features == nullptr ? nullptr : &rows, width,
            [&](std::span<const engine::Sequence> set, std::span<const size_t> members) {
              if (update_steps_ == 0 && interrupted()) fail(ErrorKind::interrupted, "interrupted");
              engine.score_set(set);
              done += static_cast<int64_t>(members.size());
              reporter_.progress(fmt::format("update {}: scoring", state_.update + 1), done,
                                 static_cast<int64_t>(rollouts.size()), "answers");
            });
  if (features != nullptr) features->append(rows);
}

void RolloutTrainer::score_reference(std::span<Rollout* const> rollouts, const engine::Fanout& fanout) {
  timed(Phase::reference, [&] {
    release_engine();
    const model::Model& model = reference_model_ ? reference_model_->model : context_.model;
    const model::Adapter* adapter = reference_adapter_ ? &*reference_adapter_ : nullptr;
    engine::Engine engine(*run_.device, adapter,
                          engine::plan_engine(model, adapter == nullptr ? nullptr : &adapter->layout,
                                              engine_options_of(false)));
    score(engine, rollouts, &Rollout::reference, fanout);
  });
}

void RolloutTrainer::step(std::span<Rollout* const> rollouts, const engine::Fanout& fanout, bool behave,
                          const std::function<void(Rollout&)>& objective) {
  timed(Phase::optimizer, [&] {
    engine::Engine& engine = trainer_engine();
    engine.clear_gradient();
    over_sets(rollouts, &Rollout::policy, true, fanout, engine.plan().options.micro_batch, nullptr, 0,
              [&](std::span<const engine::Sequence> set, std::span<const size_t> members) {
                engine.accumulate_coupled(set, [&] {
                  for (const size_t member : members) {
                    Rollout& rollout = *rollouts[member];
                    if (behave) rollout.behavior = rollout.policy;
                    objective(rollout);
                  }
                });
              });
    last_lr_ = run_.schedule.rate(state_.step);
    last_gradient_norm_ = run_.update_weights(engine.gradient(), last_lr_, state_.step + 1);
    engine.refresh_adapter();
    ++state_.optimizer_steps;
    ++update_steps_;
  });
}

ObservedRollout RolloutTrainer::observe_prompt(const Rollout& rollout, int64_t group, int64_t member) {
  observer_.prompt(rollout.prompt->index, *rollout.prompt->messages);
  ObservedRollout seen;
  seen.update = state_.update;
  seen.group = group;
  seen.member = member;
  seen.prompt = rollout.prompt->index;
  seen.completion = rollout.text;
  seen.tokens = rollout.length();
  seen.truncated = rollout.truncated;
  seen.reward = rollout.reward;
  seen.reward_raw = rollout.verified;
  seen.seed = rollout.seed;
  return seen;
}

void RolloutTrainer::sampling_metrics(std::span<const Rollout> rollouts, Metrics& metrics) const {
  const auto count = static_cast<double>(rollouts.size());
  double sum = 0;
  double verified = 0;
  double length = 0;
  double truncated = 0;
  for (const Rollout& rollout : rollouts) {
    sum += rollout.reward;
    verified += rollout.verified;
    length += static_cast<double>(rollout.length());
    truncated += rollout.truncated ? 1 : 0;
  }
  const double mean = sum / count;
  double squares = 0;
  for (const Rollout& rollout : rollouts) squares += (rollout.reward - mean) * (rollout.reward - mean);
  const auto reward = std::ranges::minmax(rollouts, {}, &Rollout::reward);
  const auto lengths = std::ranges::minmax(rollouts, {}, &Rollout::length);
  metrics["reward/mean"] = mean;
  metrics["reward/min"] = reward.min.reward;
  metrics["reward/max"] = reward.max.reward;
  metrics["reward/std"] = std::sqrt(squares / count);
  metrics["reward/verifiable_mean"] = verified / count;
  metrics["completions/length_mean"] = length / count;
  metrics["completions/length_min"] = static_cast<double>(lengths.min.length());
  metrics["completions/length_max"] = static_cast<double>(lengths.max.length());
  metrics["completions/truncation_fraction"] = truncated / count;
}

void RolloutTrainer::policy_metrics(const algo::PolicySums& sums, Metrics& metrics) const {
  const auto steps = static_cast<double>(std::max<int64_t>(1, update_steps_));
  metrics["policy/surrogate_loss"] = sums.surrogate_loss / steps;
  metrics["policy/kl"] = sums.kl_mean();
  metrics["policy/clip_fraction"] = sums.clip_fraction();
  metrics["policy/total_loss"] = sums.total_loss() / steps;
  metrics["policy/entropy"] = sums.entropy();
}

void RolloutTrainer::gap_metrics(std::span<const Rollout> rollouts, Metrics& metrics) {
  algo::SamplingGap gap;
  for (const Rollout& rollout : rollouts) {
    if (!rollout.behavior.empty()) gap.add(rollout.sampled, rollout.behavior);
  }
  if (gap.tokens == 0) return;
  metrics["policy/sampling_gap_mean"] = gap.mean();
  metrics["policy/sampling_gap_max"] = gap.max;
  if (gap.mean() <= 0.05 || warned_of_gap_) return;
  warned_of_gap_ = true;
  reporter_.warn(fmt::format(
      "log-probabilities of sampling differ from the training forward's by {:.3f} nats on average; set "
      "training.fast_sampling_context = false",
      gap.mean()));
}

}  // namespace retro::run
