#include "run/grpo_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace retro::run {

namespace {

algo::KlSchedule kl_schedule(const GrpoSection& grpo) {
  algo::KlSchedule schedule;
  schedule.coefficient = grpo.kl_coefficient;
  if (grpo.kl_schedule) {
    schedule.warmup_updates = grpo.kl_schedule->warmup_updates;
    schedule.target = grpo.kl_schedule->target;
  }
  return schedule;
}

}  // namespace

GrpoTrainer::GrpoTrainer(const Document& document, const ModelContext& context, RolloutPrompts prompts,
                         const LoadedCheckpoint* checkpoint, Reporter& reporter)
    : RolloutTrainer(document, context, std::move(prompts), checkpoint, reporter),
      grpo_(document.grpo),
      order_(prompts_.training.size(), grpo_.prompt_order == PromptSequence::shuffled,
             document.training.seed),
      kl_(kl_schedule(grpo_)),
      stall_(grpo_.max_stalled_updates, state_.stall),
      fanout_(fanout_of(document)) {
  if (checkpoint != nullptr) kl_ = algo::KlController(kl_schedule(grpo_), state_.kl);
}

std::vector<Rollout*> GrpoTrainer::Group::live_rollouts() {
  std::vector<Rollout*> result;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    if (advantages.live[i] != 0) result.push_back(&rollouts[i]);
  }
  return result;
}

void GrpoTrainer::sample_groups(int64_t count, int64_t& position, std::vector<Group>& groups) {
  std::vector<RolloutRequest> requests;
  for (int64_t g = 0; g < count; ++g, ++position) {
    const Prompt& prompt = prompts_.training[order_.at(position)];
    for (int64_t member = 0; member < grpo_.group_size; ++member)
      requests.push_back({&prompt, algo::completion_seed(grpo_.sampling.seed, position, member)});
  }
  std::vector<Rollout> rollouts = roll_out(requests);
  score_rewards(rollouts);
  if (grpo_.overlong_penalty) {
    const algo::OverlongPenalty penalty{grpo_.sampling.max_new_tokens, grpo_.overlong_penalty->buffer_tokens,
                                        grpo_.overlong_penalty->max_penalty};
    for (Rollout& rollout : rollouts) rollout.reward -= penalty.at(rollout.length());
  }
  const auto size = static_cast<size_t>(grpo_.group_size);
  for (size_t begin = 0; begin < rollouts.size(); begin += size) {
    Group group;
    std::vector<double> rewards;
    std::vector<uint8_t> truncated;
    for (size_t i = begin; i < begin + size; ++i) {
      rewards.push_back(rollouts[i].reward);
      truncated.push_back(rollouts[i].truncated ? 1 : 0);
      group.rollouts.push_back(std::move(rollouts[i]));
    }
    group.advantages = algo::group_advantages(
        rewards, truncated, grpo_.mask_truncated,
        grpo_.baseline == Baseline::mean ? algo::Baseline::mean : algo::Baseline::leave_one_out);
    for (size_t i = 0; i < size; ++i) group.rollouts[i].advantage = group.advantages.advantages[i];
    groups.push_back(std::move(group));
  }
}

std::vector<GrpoTrainer::Group> GrpoTrainer::sample(int64_t& position) {
  const algo::DynamicSampling dynamic{
      grpo_.prompts_per_update, grpo_.dynamic_sampling ? grpo_.dynamic_sampling->max_resample_factor : 1};
  std::vector<Group> groups;
  for (int64_t count = grpo_.prompts_per_update; count > 0;) {
    sample_groups(count, position, groups);
    const auto live =
        std::count_if(groups.begin(), groups.end(), [](const Group& group) { return group.live(); });
    count = dynamic.next_draw(static_cast<int64_t>(groups.size()), live);
  }
  return groups;
}

std::vector<GrpoTrainer::Group*> GrpoTrainer::choose(std::vector<Group>& groups) const {
  std::vector<Group*> chosen;
  for (Group& group : groups) chosen.push_back(&group);
  std::stable_partition(chosen.begin(), chosen.end(), [](const Group* group) { return group->live(); });
  chosen.resize(static_cast<size_t>(grpo_.prompts_per_update));
  return chosen;
}

// Behaviour is taken by the weights that sampled: by the first step's own forward pass, and for the groups
// behind it by scoring them before that step.
void GrpoTrainer::prepare_behavior(const std::vector<Group*>& chosen) {
  const auto order = algo::step_order(chosen.size(), document_.training.seed, state_.update, 0);
  const bool sampled = document_.training.behavior_logprobs == BehaviorLogprobs::sampled;
  std::vector<Rollout*> unknown;
  bool first = true;
  for (const size_t g : order) {
    if (!chosen[g]->live()) continue;
    for (Rollout* rollout : chosen[g]->live_rollouts()) {
      if (sampled) {
        rollout->behavior = rollout->sampled;
      } else if (!first) {
        unknown.push_back(rollout);
      }
    }
    first = false;
  }
  if (unknown.empty()) return;
  timed(Phase::behavior_scoring, [&] { score(trainer_engine(), unknown, &Rollout::behavior, fanout_); });
}

algo::PolicySums GrpoTrainer::train(const std::vector<Group*>& chosen, double kl_coefficient) {
  const bool sampled = document_.training.behavior_logprobs == BehaviorLogprobs::sampled;
  algo::PolicySums sums;
  for (int64_t epoch = 0; epoch < grpo_.grpo_epochs; ++epoch) {
    for (const size_t g : algo::step_order(chosen.size(), document_.training.seed, state_.update, epoch)) {
      Group& group = *chosen[g];
      if (group.live()) {
        algo::GrpoObjective objective{grpo_.clip_range_low, grpo_.clip_range_high,
                                      grpo_.importance_sampling_level == RatioLevel::token
                                          ? algo::RatioLevel::token
                                          : algo::RatioLevel::sequence,
                                      kl_coefficient, 1};
        objective.denominator =
            static_cast<double>(group.advantages.live_members() * grpo_.sampling.max_new_tokens);
        const std::vector<Rollout*> live = group.live_rollouts();
        const bool behave = !sampled && live[0]->behavior.empty();
        step(live, fanout_, behave, [&](Rollout& rollout) {
          algo::grpo_gradient({rollout.policy, rollout.behavior, rollout.reference, rollout.gradient},
                              rollout.advantage, objective, sums);
        });
      }
      ++state_.step;
      reporter_.progress(fmt::format("update {}: training", state_.update + 1),
                         state_.step - state_.update * grpo_.prompts_per_update * grpo_.grpo_epochs,
                         grpo_.prompts_per_update * grpo_.grpo_epochs, "steps");
    }
  }
  return sums;
}

void GrpoTrainer::group_metrics(const std::vector<Group>& groups, const std::vector<Group*>& chosen,
                                Metrics& metrics) {
  double spread = 0;
  double without = 0;
  double advantage = 0;
  double members = 0;
  double trained = 0;
  for (const Group& group : groups) {
    double mean = 0;
    for (const Rollout& rollout : group.rollouts) mean += rollout.reward;
    mean /= static_cast<double>(group.rollouts.size());
    double squares = 0;
    for (const Rollout& rollout : group.rollouts)
      squares += (rollout.reward - mean) * (rollout.reward - mean);
    spread += std::sqrt(squares / static_cast<double>(group.rollouts.size()));
    without += group.advantages.cause == algo::DeadCause::no_spread ? 1 : 0;
  }
  for (const Group* group : chosen) {
    for (size_t i = 0; i < group->rollouts.size(); ++i) {
      ++members;
      if (!group->live() || group->advantages.live[i] == 0) continue;
      ++trained;
      advantage += std::abs(group->rollouts[i].advantage);
    }
  }
  const auto count = static_cast<double>(groups.size());
  metrics["reward/group_std"] = spread / count;
  metrics["batch/zero_std_group_fraction"] = without / count;
  metrics["batch/advantage_abs_mean"] = trained > 0 ? advantage / trained : 0;
  metrics["batch/trained_fraction"] = trained / members;
  metrics["batch/groups_sampled_fraction"] = count / static_cast<double>(grpo_.prompts_per_update);
}

void GrpoTrainer::observe(std::vector<Group>& groups, const std::vector<Group*>& chosen) {
  if (!observed()) return;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const bool taken = group.live() && std::ranges::count(chosen, &groups[g]) > 0;
    ObservedSelection selection;
    selection.update = state_.update;
    selection.group = static_cast<int64_t>(g);
    selection.skip = group.advantages.cause == algo::DeadCause::truncated  ? SkipReason::truncated
                     : group.advantages.cause == algo::DeadCause::unscored ? SkipReason::unscored
                     : taken                                               ? SkipReason::none
                                                                           : SkipReason::zero_signal;
    double squares = 0;
    for (const Rollout& rollout : group.rollouts) selection.reward_mean += rollout.reward;
    selection.reward_mean /= static_cast<double>(group.rollouts.size());
    for (size_t i = 0; i < group.rollouts.size(); ++i) {
      const Rollout& rollout = group.rollouts[i];
      ObservedRollout seen = observe_prompt(rollout, selection.group, static_cast<int64_t>(i));
      const bool live = taken && group.advantages.live[i] != 0;
      if (live) selection.live.push_back(seen.member);
      seen.advantage = rollout.advantage;
      seen.skip = live                                                   ? SkipReason::none
                  : (taken || rollout.truncated) && grpo_.mask_truncated ? SkipReason::truncated
                                                                         : selection.skip;
      squares += (rollout.reward - selection.reward_mean) * (rollout.reward - selection.reward_mean);
      observer_.rollout(seen);
    }
    selection.reward_std = std::sqrt(squares / static_cast<double>(group.rollouts.size()));
    observer_.selection(selection);
  }
}

void GrpoTrainer::observe_outcome(std::vector<Group>& groups, const std::vector<Group*>& chosen) {
  if (!observed()) return;
  for (size_t g = 0; g < groups.size(); ++g) {
    observer_.outcome(state_.update, static_cast<int64_t>(g),
                      groups[g].live() && std::ranges::count(chosen, &groups[g]) > 0);
  }
}

void GrpoTrainer::update(Metrics& metrics) {
  int64_t position = state_.position;
  std::vector<Group> groups = sample(position);
  const std::vector<Group*> chosen = choose(groups);
  observe(groups, chosen);
  const double coefficient = kl_.coefficient();
  std::vector<Rollout*> live;
  for (Group* group : chosen) {
    if (!group->live()) continue;
    for (Rollout* rollout : group->live_rollouts()) live.push_back(rollout);
  }
  if (grpo_.kl_coefficient > 0 && !live.empty()) score_reference(live, fanout_);
  prepare_behavior(chosen);
  const algo::PolicySums sums = train(chosen, coefficient);
  observe_outcome(groups, chosen);
  state_.position = position;
  kl_.close_update(live.empty() || grpo_.kl_coefficient == 0 ? std::nullopt : std::optional(sums.kl_mean()));
  state_.kl = kl_.state();
  std::vector<algo::DeadCause> causes;
  for (const Group& group : groups) causes.push_back(group.advantages.cause);
  stalled_ = stall_.close_update(causes);
  state_.stall = stall_.state();

  std::vector<Rollout> all;
  for (const Group& group : groups) all.insert(all.end(), group.rollouts.begin(), group.rollouts.end());
  sampling_metrics(all, metrics);
  gap_metrics(all, metrics);
  group_metrics(groups, chosen, metrics);
  policy_metrics(sums, metrics);
  metrics["policy/kl_coefficient"] = coefficient;
  metrics["policy/kl_capped"] = static_cast<double>(sums.capped);
  if (sums.clip_fraction() > 0.9 && grpo_.importance_sampling_level == RatioLevel::sequence) {
    fail(ErrorKind::data,
         "update {}: {:.0f} % of the tokens were clipped, so that nothing is learnt: sequence ratios want "
         "clip "
         "ranges of some 1e-4, and grpo.clip_range_low and clip_range_high are {} and {}",
         state_.update + 1, 100 * sums.clip_fraction(), grpo_.clip_range_low, grpo_.clip_range_high);
  }
}

bool GrpoTrainer::stalled() {
  if (!stalled_) return false;
  reporter_.line("stopping: " + stall_.report("grpo", grpo_.sampling.max_new_tokens));
  return true;
}

}  // namespace retro::run
