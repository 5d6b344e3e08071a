#include "run/rollout_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "run/keys.h"
#include "run/rules.h"

namespace retro::run {

namespace {

struct Required {
  std::string_view section;
  std::string_view key;
};

constexpr Required kSharedKeys[] = {{"", "prompts"},
                                    {"", "reward_command"},
                                    {"", "updates"},
                                    {"", "kl_coefficient"},
                                    {".sampling", "temperature"},
                                    {".sampling", "top_p"},
                                    {".sampling", "max_new_tokens"},
                                    {".sampling", "seed"}};
constexpr Required kPpoKeys[] = {{"", "rollout_batch_size"}, {"", "ppo_epochs"}, {"", "clip_range"}};
constexpr Required kGrpoKeys[] = {{"", "prompts_per_update"},
                                  {"", "group_size"},
                                  {"", "grpo_epochs"},
                                  {"", "clip_range_low"},
                                  {"", "clip_range_high"}};
// Of tables that may be left out.
constexpr Required kTableKeys[] = {{"grpo.overlong_penalty", "buffer_tokens"},
                                   {"grpo.overlong_penalty", "max_penalty"},
                                   {"grpo.dynamic_sampling", "max_resample_factor"},
                                   {"observe", "directory"},
                                   {"reference", "model"}};

std::string_view example_of(std::string_view section, std::string_view name) {
  const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& known) {
    return known.section == section && known.name == name;
  });
  return key->example;
}

class RolloutRules {
 public:
  RolloutRules(Document& document, Faults& faults)
      : document_(document), faults_(faults), section_(algorithm_name(document.run.algorithm)) {}

  void apply() {
    check_required();
    check_lengths();
    if (document_.run.algorithm == Algorithm::ppo) {
      check_ppo();
    } else {
      check_grpo();
    }
    check_reference();
    check_horizon();
    derive_concurrency();
    if (given("training.epochs") && document_.training.epochs != 1) {
      document_.warnings.push_back(fmt::format(
          "{} = {} has no effect in a {} run: [{}].updates says how long it runs, {}_epochs how often it "
          "trains on an update",
          place(document_, "training.epochs"), document_.training.epochs, section_, section_, section_));
      document_.training.epochs = 1;
    }
  }

 private:
  bool given(std::string_view key) const { return document_.given(key); }
  bool good(std::string_view key) const { return given(key) && !faults_.broken(key); }
  std::string own(std::string_view key) const { return fmt::format("{}.{}", section_, key); }
  Position at(std::string_view key) const {
    const auto found = document_.positions.find(key);
    return found == document_.positions.end() ? Position{} : found->second;
  }
  void add(std::string_view key, const std::string& text) {
    const size_t dot = key.rfind('.');
    faults_.add(at(key), fmt::format("[{}].{}{}", key.substr(0, dot), key.substr(dot + 1), text));
  }
  void require(const std::string& section, std::string_view key) {
    const std::string name = fmt::format("{}.{}", section, key);
    if (given(name) || faults_.broken(name)) return;
    const Position where = given(section) ? at(section) : at(section_);
    faults_.add(where,
                fmt::format("[{}].{} is required, as {} = {}", section, key, key, example_of(section, key)));
  }

  void check_required();
  void check_lengths();
  void check_ppo();
  void check_grpo();
  void check_reference();
  void check_horizon();
  void derive_concurrency();

  Document& document_;
  Faults& faults_;
  std::string section_;
};

void RolloutRules::check_required() {
  const auto require_all = [&](std::span<const Required> wanted) {
    for (const Required& one : wanted) require(section_ + std::string(one.section), one.key);
  };
  require_all(kSharedKeys);
  if (document_.run.algorithm == Algorithm::ppo) {
    require_all(kPpoKeys);
  } else {
    require_all(kGrpoKeys);
  }
  for (const Required& one : kTableKeys) {
    if (given(one.section)) require(std::string(one.section), one.key);
  }
}

void RolloutRules::check_lengths() {
  const int64_t ctx = document_.training.ctx, longest = document_.rollout().sampling.max_new_tokens;
  const std::string key = own("sampling.max_new_tokens");
  if (!good(key) || faults_.broken("training.ctx") || longest < ctx) return;
  add(key,
      fmt::format(
          " = {}: prompt and answer share training.ctx = {}, so it is at most {}; or set ctx to {} or more",
          longest, ctx, ctx - 1, longest + 1));
}

void RolloutRules::check_ppo() {
  const PpoSection& ppo = document_.ppo;
  if (!ppo.critic.enabled) {
    for (const char* name : {"gamma", "gae_lambda", "value_lr", "value_epochs", "feature_dtype"}) {
      const std::string key = fmt::format("ppo.critic.{}", name);
      if (given(key)) add(key, " is read only with enabled = true. Set that, or remove it");
    }
  }
  if (good("ppo.sampling.top_p") && ppo.sampling.top_p < 1) {
    document_.warnings.push_back(
        fmt::format("{} = {}: answers are drawn from a part of the distribution, the ratios are taken over "
                    "all of it, which biases them; 1.0 does not",
                    place(document_, "ppo.sampling.top_p"), ppo.sampling.top_p));
  }
}

void RolloutRules::check_grpo() {
  const GrpoSection& grpo = document_.grpo;
  if (good("grpo.clip_range_low") && good("grpo.clip_range_high") &&
      grpo.clip_range_high < grpo.clip_range_low) {
    add("grpo.clip_range_high", fmt::format(" = {}: is at least clip_range_low = {}, as clip_range_high = {}",
                                            grpo.clip_range_high, grpo.clip_range_low, grpo.clip_range_low));
  }
  constexpr double kWideForSequences = 0.05;
  const double widest = std::max(grpo.clip_range_low, grpo.clip_range_high);
  if (grpo.importance_sampling_level == RatioLevel::sequence && widest >= kWideForSequences) {
    document_.warnings.push_back(
        fmt::format("{}: ratios of whole answers stay close to 1, so clips as wide as {} hardly ever act; "
                    "values near 0.0004 are usual with importance_sampling_level = \"sequence\"",
                    place(document_, "grpo.clip_range_high"), widest));
  }
  const int64_t buffer = grpo.overlong_penalty ? grpo.overlong_penalty->buffer_tokens : 0;
  if (good("grpo.sampling.max_new_tokens") && buffer > grpo.sampling.max_new_tokens) {
    add("grpo.overlong_penalty.buffer_tokens",
        fmt::format(" = {0}: is at most [grpo.sampling].max_new_tokens = {1}, as buffer_tokens = {1}", buffer,
                    grpo.sampling.max_new_tokens));
  }
  if (given("grpo.kl_schedule") && good("grpo.kl_coefficient") && grpo.kl_coefficient == 0) {
    faults_.add(at("grpo.kl_schedule"),
                "[grpo.kl_schedule] moves [grpo].kl_coefficient, which is 0. Remove the table, or set a "
                "coefficient, as kl_coefficient = 0.02");
  }
}

void RolloutRules::check_reference() {
  if (!document_.reference) return;
  ReferenceSection& reference = *document_.reference;
  if (good("grpo.kl_coefficient") && document_.grpo.kl_coefficient == 0) {
    faults_.add(at("reference"),
                "[reference] is the model of the KL term, and [grpo].kl_coefficient is 0. Remove the "
                "section, or set a coefficient, as kl_coefficient = 0.02");
  }
  if (!given("reference.ctx")) {
    reference.ctx = document_.training.ctx;
  } else if (!faults_.broken("training.ctx") && reference.ctx < document_.training.ctx) {
    add("reference.ctx",
        fmt::format(" = {0}: it reads what is trained, so it is at least training.ctx = {1}, as ctx = {1}",
                    reference.ctx, document_.training.ctx));
  }
}

void RolloutRules::check_horizon() {
  const int64_t steps = document_.nominal_steps(), warmup = document_.training.warmup_steps;
  if (steps == 0 || faults_.broken("training.warmup_steps") || warmup < steps) return;
  add("training.warmup_steps",
      fmt::format(" = {}: the run has {} steps (updates x {} x epochs), so the rate would never get past its "
                  "warm-up; at most {}",
                  warmup, steps, document_.run.algorithm == Algorithm::ppo ? "answers" : "prompts",
                  steps - 1));
}

void RolloutRules::derive_concurrency() {
  constexpr int64_t kMost = 256;
  TrainingSection& training = document_.training;
  if (given("training.generation_concurrency")) return;
  training.generation_concurrency =
      std::max<int64_t>(1, std::min({document_.answers_per_update(), training.step_tokens(), kMost}));
}

}  // namespace

void apply_rollout_rules(Document& document, Faults& faults) {
  RolloutRules(document, faults).apply();
}

void derive_rollout_step(Document& document, Faults& faults) {
  constexpr int64_t kPassBesideAccumulation = 32;
  TrainingSection& training = document.training;
  for (const char* key : {"training.ctx", "training.micro_batch", "training.gradient_accumulation"}) {
    if (faults.broken(key)) return;
  }
  const auto at = [&](const char* key) {
    const auto found = document.positions.find(key);
    return found == document.positions.end() ? Position{} : found->second;
  };
  const bool accumulation_given = document.given("training.gradient_accumulation");
  const int64_t accumulation = training.gradient_accumulation;
  if (!document.given("training.micro_batch")) {
    if (accumulation_given) {
      training.micro_batch = kPassBesideAccumulation;
    } else {
      derive_step(document, faults);
      return;
    }
  }
  if (training.micro_batch < training.ctx && training.ctx % training.micro_batch != 0) {
    faults.add(
        at("training.micro_batch"),
        fmt::format("[training].micro_batch = {}: must divide ctx = {} or be larger, as micro_batch = {}",
                    training.micro_batch, training.ctx, largest_divisor(training.ctx, training.micro_batch)));
    return;
  }
  training.gradient_accumulation = std::max<int64_t>(1, training.ctx / training.micro_batch);
  if (accumulation_given && accumulation != training.gradient_accumulation) {
    faults.add(at("training.gradient_accumulation"),
               fmt::format("[training].gradient_accumulation = {}: is ctx / micro_batch = {} / {} in a {} "
                           "run; remove it, or set gradient_accumulation = {}",
                           accumulation, training.ctx, training.micro_batch,
                           algorithm_name(document.run.algorithm), training.gradient_accumulation));
  }
}

}  // namespace retro::run
