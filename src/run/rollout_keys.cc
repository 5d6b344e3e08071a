#include "run/rollout_keys.h"

#include "run/key_store.h"

namespace retro::run {

namespace {

using D = Document;
using enum KeyKind;

constexpr Bounds kOpenUnit{.low = 0, .high = 1, .low_open = true, .high_open = true};
constexpr Bounds kUnit{.low = 0, .high = 1};
constexpr Bounds kPositive{.low = 0, .high = 1e30, .low_open = true};
constexpr Bounds kNotNegativeCount{.low = 0, .high = kMany};
// Products of these counts stay far from overflow.
constexpr Bounds kUpdates{.low = 1, .high = 1e9};
constexpr Bounds kBatch{.low = 1, .high = 1e5};
constexpr Bounds kEpochs{.low = 1, .high = 1000};
constexpr Bounds kExactlyOne{.low = 1, .high = 1};

constexpr std::string_view kJudgeOnly = "goes with [grpo.judge], and this build has no judges yet. Remove it";

void put_baseline(Document& document, const KeyValue& value) {
  document.grpo.baseline = value.choice == 0 ? Baseline::mean : Baseline::leave_one_out;
}

/// The keys that [ppo] and [grpo] share, of the section kSection.
template <auto kSection>
std::vector<Key> shared_keys(std::string_view section, std::string_view sampling) {
  using R = RolloutSection;
  using S = SamplingSection;
  const bool grpo = section == "grpo";
  const Bounds temperature = grpo ? kExactlyOne : Bounds{.low = 0, .high = 100, .low_open = true};
  const Bounds top_p = grpo ? kExactlyOne : Bounds{.low = 0, .high = 1, .low_open = true};
  return {
      {section, "prompts", path, put<kSection, &R::prompts>, "\"prompts.jsonl\""},
      {section, "reward_command", command, put<kSection, &R::reward_command>, "[\"python3\", \"reward.py\"]"},
      {section,
       "reward_mode",
       choice,
       put<kSection, &R::reward_mode>,
       "\"persistent\"",
       {},
       {"persistent", "oneshot"}},
      {section,
       "reward_timeout_seconds",
       real,
       put<kSection, &R::reward_timeout_seconds>,
       "300",
       {.low = 0, .high = 1e8, .low_open = true}},
      {section, "updates", integer, put<kSection, &R::updates>, "100", kUpdates},
      {section, "kl_coefficient", real, put<kSection, &R::kl_coefficient>, "0.0", {.low = 0, .high = 1e30}},
      {sampling, "temperature", real, put<kSection, &R::sampling, &S::temperature>, "1.0", temperature},
      {sampling, "top_p", real, put<kSection, &R::sampling, &S::top_p>, "1.0", top_p},
      {sampling,
       "max_new_tokens",
       integer,
       put<kSection, &R::sampling, &S::max_new_tokens>,
       "64",
       {.low = 1, .high = kLongestContext}},
      {sampling, "seed", integer, put<kSection, &R::sampling, &S::seed>, "42", kNotNegative},
  };
}

std::vector<Key> ppo_keys() {
  using P = PpoSection;
  using C = CriticSection;
  constexpr std::string_view kCritic = "ppo.critic";
  return {
      {"ppo", "rollout_batch_size", integer, put<&D::ppo, &P::rollout_batch_size>, "32", kBatch},
      {"ppo", "ppo_epochs", integer, put<&D::ppo, &P::ppo_epochs>, "4", kEpochs},
      {"ppo", "clip_range", real, put<&D::ppo, &P::clip_range>, "0.2", kOpenUnit},
      {kCritic, "enabled", boolean, put<&D::ppo, &P::critic, &C::enabled>},
      {kCritic, "gamma", real, put<&D::ppo, &P::critic, &C::gamma>, "1.0", kUnit},
      {kCritic, "gae_lambda", real, put<&D::ppo, &P::critic, &C::gae_lambda>, "0.95", kUnit},
      {kCritic, "value_lr", real, put<&D::ppo, &P::critic, &C::value_lr>, "0.01", kPositive},
      {kCritic, "value_epochs", integer, put<&D::ppo, &P::critic, &C::value_epochs>, "8", kEpochs},
      {kCritic,
       "feature_dtype",
       choice,
       put<&D::ppo, &P::critic, &C::feature_dtype>,
       "\"f32\"",
       {},
       {"f32", "f16", "bf16"}},
  };
}

std::vector<Key> grpo_keys() {
  using G = GrpoSection;
  using Overlong = OverlongPenaltySection;
  return {
      {"grpo", "prompts_per_update", integer, put<&D::grpo, &G::prompts_per_update>, "8", kBatch},
      {"grpo", "group_size", integer, put<&D::grpo, &G::group_size>, "8", {.low = 2, .high = 256}},
      {"grpo", "grpo_epochs", integer, put<&D::grpo, &G::grpo_epochs>, "1", kEpochs},
      {"grpo", "clip_range_low", real, put<&D::grpo, &G::clip_range_low>, "0.2", kOpenUnit},
      {"grpo", "clip_range_high", real, put<&D::grpo, &G::clip_range_high>, "0.28", kOpenUnit},
      {"grpo", "mask_truncated", boolean, put<&D::grpo, &G::mask_truncated>},
      {"grpo", "baseline", choice, put_baseline, "\"mean\"", {}, {"mean", "leave_one_out", "rloo"}},
      {"grpo",
       "prompt_order",
       choice,
       put<&D::grpo, &G::prompt_order>,
       "\"shuffled\"",
       {},
       {"sequential", "shuffled"}},
      {"grpo", "max_stalled_updates", integer, put<&D::grpo, &G::max_stalled_updates>, "25",
       kNotNegativeCount},
      {"grpo",
       "importance_sampling_level",
       choice,
       put<&D::grpo, &G::importance_sampling_level>,
       "\"token\"",
       {},
       {"token", "sequence"}},
      {"grpo", "judge_weight", real, discard, "", {}, {}, {}, kJudgeOnly},
      {"grpo", "judge_failure", choice, discard, "", {}, {}, {}, kJudgeOnly},
      {"grpo", "max_judge_dropped_fraction", real, discard, "", {}, {}, {}, kJudgeOnly},
      {"grpo.overlong_penalty",
       "buffer_tokens",
       integer,
       put<&D::grpo, &G::overlong_penalty, &Overlong::buffer_tokens>,
       "16",
       {.low = 1, .high = kLongestContext}},
      {"grpo.overlong_penalty", "max_penalty", real,
       put<&D::grpo, &G::overlong_penalty, &Overlong::max_penalty>, "1.0", kPositive},
      {"grpo.kl_schedule", "warmup_updates", integer,
       put<&D::grpo, &G::kl_schedule, &KlScheduleSection::warmup_updates>, "10", kNotNegativeCount},
      {"grpo.kl_schedule", "target", real, put<&D::grpo, &G::kl_schedule, &KlScheduleSection::target>, "0.02",
       kPositive},
      {"grpo.dynamic_sampling",
       "max_resample_factor",
       integer,
       put<&D::grpo, &G::dynamic_sampling, &DynamicSamplingSection::max_resample_factor>,
       "3",
       {.low = 2, .high = 1000}},
  };
}

std::vector<Key> other_keys() {
  using T = TrainingSection;
  using O = ObserveSection;
  std::vector<Key> keys = {
      {"training",
       "generation_concurrency",
       integer,
       put<&D::training, &T::generation_concurrency>,
       "16",
       {.low = 1, .high = 65536}},
      {"training",
       "generation_batch",
       integer,
       put<&D::training, &T::generation_batch>,
       "256",
       {.low = 1, .high = kLongestContext}},
      {"training",
       "shared_prefix_fanout",
       integer,
       put<&D::training, &T::shared_prefix_fanout>,
       "\"auto\"",
       {.low = 2, .high = 256},
       {"auto", "off", "max"}},
      {"training", "fast_sampling_context", boolean, put<&D::training, &T::fast_sampling_context>},
      {"training",
       "behavior_logprobs",
       choice,
       put<&D::training, &T::behavior_logprobs>,
       "\"rescored\"",
       {},
       {"rescored", "sampled"}},
  };
  for (Key& key : keys) key.rollout_only = true;
  const std::vector<Key> sections = {
      {"observe", "directory", path, put<&D::observe, &O::directory>, "\"observe\""},
      {"observe", "enabled", boolean, put<&D::observe, &O::enabled>},
      {"observe", "every", integer, put<&D::observe, &O::every>, "1", kCount},
      {"observe", "max_text_chars", integer, put<&D::observe, &O::max_text_chars>, "0", kNotNegativeCount},
      {"reference", "model", path, put<&D::reference, &ReferenceSection::model>, "\"reference.gguf\""},
      {"reference",
       "ctx",
       integer,
       put<&D::reference, &ReferenceSection::ctx>,
       "512",
       {.low = 2, .high = kLongestContext}},
  };
  keys.insert(keys.end(), sections.begin(), sections.end());
  return keys;
}

}  // namespace

std::vector<Key> rollout_keys() {
  std::vector<Key> all;
  for (const std::vector<Key>& part : {other_keys(), shared_keys<&D::ppo>("ppo", "ppo.sampling"), ppo_keys(),
                                       shared_keys<&D::grpo>("grpo", "grpo.sampling"), grpo_keys()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace retro::run
