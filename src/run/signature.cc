#include "run/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "base/hash.h"
#include "run/keys.h"
#include "run/toml_file.h"

namespace retro::run {

namespace {

// What may grow while the schedule is constant.
constexpr std::string_view kLengths[] = {"training.epochs", "ppo.updates", "grpo.updates"};
constexpr std::string_view kSchedule = "training.lr_scheduler";

template <typename Enum, size_t kCount>
std::string name(Enum value, const std::array<const char*, kCount>& names) {
  return names.at(static_cast<size_t>(value));
}

std::string number(double value) {
  return fmt::format("{}", value);
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return text;
}

void add_lora(const LoraSection& lora, Fields& fields) {
  fields.emplace_back("lora.seed", fmt::format("{}", lora.seed));
  fields.emplace_back("lora.init_adapter", lora.init_adapter ? "given" : "none");
  if (lora.init_adapter) return;
  fields.emplace_back("lora.rank", fmt::format("{}", lora.rank));
  fields.emplace_back("lora.alpha", number(lora.alpha));
  fields.emplace_back("lora.targets", joined(lora.targets));
  fields.emplace_back("lora.dtype", name(lora.dtype, std::array{"f16", "f32"}));
}

void add_training(const TrainingSection& training, const OptimizerSection& optimizer, Fields& fields) {
  fields.emplace_back("training.trainable", name(training.trainable, std::array{"lora"}));
  fields.emplace_back("training.optimizer", name(training.optimizer, std::array{"adamw", "sgd"}));
  if (training.optimizer == OptimizerKind::adamw) {
    fields.emplace_back("optimizer.adamw.beta1", number(optimizer.beta1));
    fields.emplace_back("optimizer.adamw.beta2", number(optimizer.beta2));
    fields.emplace_back("optimizer.adamw.eps", number(optimizer.eps));
  }
  fields.emplace_back("training.lr", number(training.lr));
  fields.emplace_back(kSchedule, name(training.lr_scheduler, std::array{"constant", "linear", "cosine"}));
  fields.emplace_back("training.warmup_steps", fmt::format("{}", training.warmup_steps));
  fields.emplace_back("training.weight_decay", number(training.weight_decay));
  fields.emplace_back("training.max_grad_norm", number(training.max_grad_norm));
  fields.emplace_back("training.seed", fmt::format("{}", training.seed));
  fields.emplace_back("training.epochs", fmt::format("{}", training.epochs));
  fields.emplace_back("training.ctx", fmt::format("{}", training.ctx));
  fields.emplace_back("training.micro_batch x gradient_accumulation",
                      fmt::format("{}", training.step_tokens()));
  fields.emplace_back("training.kv_dtype", name(training.kv_dtype, std::array{"f16", "f32"}));
}

void add_sft(const SftSection& sft, Fields& fields) {
  const std::string format =
      sft.data_format ? name(*sft.data_format, std::array{"text", "chat"}) : std::string("inferred");
  fields.emplace_back("sft.data_format", format);
  fields.emplace_back("sft.shuffle", sft.shuffle ? "true" : "false");
  fields.emplace_back("sft.packing", sft.packing ? "true" : "false");
  fields.emplace_back("sft.overlong", name(sft.overlong, std::array{"error", "drop", "truncate"}));
  fields.emplace_back("sft.template_variables", sft.template_variables);
}

std::string flag(bool value) {
  return value ? "true" : "false";
}

// What decides the answers and the gradients; how long a reward program may take does not.
void add_rollout(const Document& document, Fields& fields) {
  const RolloutSection& rollout = document.rollout();
  const std::string section(algorithm_name(document.run.algorithm));
  const auto add = [&](std::string_view key, std::string value) {
    fields.emplace_back(fmt::format("{}.{}", section, key), std::move(value));
  };
  std::string command;
  for (const std::string& word : rollout.reward_command)
    command += (command.empty() ? "" : " ") + quote(word);
  add("reward_command", command);
  add("reward_mode", name(rollout.reward_mode, std::array{"persistent", "oneshot"}));
  add("updates", fmt::format("{}", rollout.updates));
  add("kl_coefficient", number(rollout.kl_coefficient));
  add("sampling.temperature", number(rollout.sampling.temperature));
  add("sampling.top_p", number(rollout.sampling.top_p));
  add("sampling.max_new_tokens", fmt::format("{}", rollout.sampling.max_new_tokens));
  add("sampling.seed", fmt::format("{}", rollout.sampling.seed));
  const TrainingSection& training = document.training;
  fields.emplace_back("training.fast_sampling_context", flag(training.fast_sampling_context));
  fields.emplace_back("training.behavior_logprobs",
                      name(training.behavior_logprobs, std::array{"rescored", "sampled"}));
}

void add_ppo(const PpoSection& ppo, Fields& fields) {
  fields.emplace_back("ppo.rollout_batch_size", fmt::format("{}", ppo.rollout_batch_size));
  fields.emplace_back("ppo.ppo_epochs", fmt::format("{}", ppo.ppo_epochs));
  fields.emplace_back("ppo.clip_range", number(ppo.clip_range));
  fields.emplace_back("ppo.critic.enabled", flag(ppo.critic.enabled));
  if (!ppo.critic.enabled) return;
  fields.emplace_back("ppo.critic.gamma", number(ppo.critic.gamma));
  fields.emplace_back("ppo.critic.gae_lambda", number(ppo.critic.gae_lambda));
  fields.emplace_back("ppo.critic.value_lr", number(ppo.critic.value_lr));
  fields.emplace_back("ppo.critic.value_epochs", fmt::format("{}", ppo.critic.value_epochs));
  fields.emplace_back("ppo.critic.feature_dtype",
                      name(ppo.critic.feature_dtype, std::array{"f32", "f16", "bf16"}));
}

void add_grpo(const GrpoSection& grpo, Fields& fields) {
  const auto add = [&](std::string_view key, std::string value) {
    fields.emplace_back(fmt::format("grpo.{}", key), std::move(value));
  };
  add("prompts_per_update", fmt::format("{}", grpo.prompts_per_update));
  add("group_size", fmt::format("{}", grpo.group_size));
  add("grpo_epochs", fmt::format("{}", grpo.grpo_epochs));
  add("clip_range_low", number(grpo.clip_range_low));
  add("clip_range_high", number(grpo.clip_range_high));
  add("mask_truncated", flag(grpo.mask_truncated));
  add("baseline", name(grpo.baseline, std::array{"mean", "leave_one_out"}));
  add("prompt_order", name(grpo.prompt_order, std::array{"sequential", "shuffled"}));
  add("max_stalled_updates", fmt::format("{}", grpo.max_stalled_updates));
  add("importance_sampling_level", name(grpo.importance_sampling_level, std::array{"token", "sequence"}));
  if (grpo.overlong_penalty) {
    add("overlong_penalty.buffer_tokens", fmt::format("{}", grpo.overlong_penalty->buffer_tokens));
    add("overlong_penalty.max_penalty", number(grpo.overlong_penalty->max_penalty));
  }
  if (grpo.kl_schedule) {
    const auto& target = grpo.kl_schedule->target;
    add("kl_schedule.warmup_updates", fmt::format("{}", grpo.kl_schedule->warmup_updates));
    add("kl_schedule.target", target ? number(*target) : "none");
  }
  if (grpo.dynamic_sampling) {
    add("dynamic_sampling.max_resample_factor",
        fmt::format("{}", grpo.dynamic_sampling->max_resample_factor));
  }
}

void add_algorithm(const Document& document, Fields& fields) {
  if (!document.rolls_out()) {
    add_sft(document.sft, fields);
    return;
  }
  add_rollout(document, fields);
  if (document.run.algorithm == Algorithm::ppo) {
    add_ppo(document.ppo, fields);
  } else {
    add_grpo(document.grpo, fields);
  }
  // Which model it is, its fingerprint says, which the caller adds.
  if (document.reference) fields.emplace_back("reference.ctx", fmt::format("{}", document.reference->ctx));
}

void add_evaluation(const EvaluationSection& evaluation, Fields& fields) {
  const auto count = [](const std::optional<int64_t>& value) {
    return value ? fmt::format("{}", *value) : std::string("none");
  };
  fields.emplace_back("evaluation.every_iterations", fmt::format("{}", evaluation.every_iterations));
  fields.emplace_back("evaluation.max_examples", count(evaluation.max_examples));
  fields.emplace_back("evaluation.patience", count(evaluation.patience));
  fields.emplace_back("evaluation.min_delta", number(evaluation.min_delta));
}

const std::string* find(const Fields& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool may_grow(const Signature& now, std::string_view key, const std::string& before,
              const std::string& after) {
  const std::string* schedule = find(now.fixed, kSchedule);
  const bool length = std::find(std::begin(kLengths), std::end(kLengths), key) != std::end(kLengths);
  if (!length || schedule == nullptr || *schedule != "constant") return false;
  int64_t old_length = 0, new_length = 0;
  std::from_chars(before.data(), before.data() + before.size(), old_length);
  std::from_chars(after.data(), after.data() + after.size(), new_length);
  return new_length > old_length;
}

}  // namespace

Signature signature(const Document& document) {
  Signature signature;
  signature.fixed.emplace_back("run.algorithm", std::string(algorithm_name(document.run.algorithm)));
  signature.fixed.emplace_back("output.kind", name(document.output.kind, std::array{"adapter"}));
  add_lora(document.lora, signature.fixed);
  add_training(document.training, document.optimizer, signature.fixed);
  add_algorithm(document, signature.fixed);
  if (document.evaluation) add_evaluation(*document.evaluation, signature.fixed);
  const TrainingSection& training = document.training;
  signature.said.emplace_back("model.device", name(document.model.device, std::array{"auto", "cpu"}));
  signature.said.emplace_back("training.checkpoint_dtype",
                              training.gradient_checkpointing
                                  ? name(training.checkpoint_dtype, std::array{"f32", "f16", "bf16"})
                                  : "f32");
  return signature;
}

std::string signature_difference(const Signature& saved, const Signature& now) {
  for (const auto& [key, before] : saved.fixed) {
    const std::string* after = find(now.fixed, key);
    if (after == nullptr) return fmt::format("{} was {} and is not set now", key, before);
    if (*after != before && !may_grow(now, key, before, *after)) {
      return fmt::format("{} was {} and is {}", key, before, *after);
    }
  }
  for (const auto& [key, after] : now.fixed) {
    if (find(saved.fixed, key) == nullptr) return fmt::format("{} was not set and is {}", key, after);
  }
  return {};
}

std::vector<std::string> signature_remarks(const Signature& saved, const Signature& now) {
  std::vector<std::string> remarks;
  for (const auto& [key, before] : saved.said) {
    const std::string* after = find(now.said, key);
    if (after != nullptr && *after != before) {
      remarks.push_back(
          fmt::format("{} was {} and is {}: the result's bytes will differ", key, before, *after));
    }
  }
  return remarks;
}

std::string document_hash(const Document& document) {
  Hasher hasher;
  for (const auto& [key, value] : signature(document).fixed) {
    // Lengths keep two different lists from running into the same bytes.
    hasher.update(fmt::format("{} {} {}\n{}\n", key.size(), value.size(), key, value));
  }
  return hasher.hex();
}

}  // namespace retro::run
