#include "run/keys.h"

#include <fmt/format.h>

#include <cmath>

#include "run/key_store.h"
#include "run/nearest.h"
#include "run/rollout_keys.h"

namespace retro::run {

namespace {

void put_data_format(Document& document, const KeyValue& value) {
  constexpr size_t kTextSpellings = 2;
  document.sft.data_format = value.choice < kTextSpellings ? DataFormat::text : DataFormat::chat;
}

constexpr Bounds kBelowOne{.low = 0, .high = 0.9999999};  // 1 - 1e-8 is 1 as an f32
constexpr std::string_view kBaseOnly =
    "is for runs that train base weights (full, partial, hybrid); trainable = \"lora\" does not read it. "
    "Remove it";
constexpr std::string_view kLater = "this build does not have it yet. Remove it";

std::vector<Key> make_keys() {
  using D = Document;
  using enum KeyKind;
  using R = RunSection;
  using M = ModelSection;
  using L = LoraSection;
  using T = TrainingSection;
  using O = OptimizerSection;
  using E = EvaluationSection;
  using C = CheckpointSection;
  using S = SftSection;
  return {
      {"run",
       "algorithm",
       choice,
       put<&D::run, &R::algorithm>,
       "\"sft\"",
       {},
       {"sft", "ppo", "grpo"},
       {"preference", "distill", "agent_grpo"}},
      {"run", "verbose", boolean, put<&D::run, &R::verbose>},

      {"model", "path", path, put<&D::model, &M::path>, "\"model.gguf\""},
      {"model", "device", choice, put<&D::model, &M::device>, "\"auto\"", {}, {"auto", "cpu"}, {"gpu"}},

      {"output", "path", path, put<&D::output, &OutputSection::path>, "\"adapter.gguf\""},
      {"output",
       "kind",
       choice,
       put<&D::output, &OutputSection::kind>,
       "\"adapter\"",
       {},
       {"adapter"},
       {"trainable", "model"}},

      {"lora", "output", path, put<&D::output, &OutputSection::path>, "\"adapter.gguf\""},
      {"lora", "rank", integer, put<&D::lora, &L::rank>, "8", {.low = 1, .high = 65536}},
      {"lora", "alpha", real, put<&D::lora, &L::alpha>, "16.0", {.low = 0, .high = 1e30, .low_open = true}},
      {"lora", "seed", integer, put<&D::lora, &L::seed>, "42", kNotNegative},
      {"lora", "targets", names, put<&D::lora, &L::targets>, "[\"q\", \"v\"]"},
      {"lora", "dtype", choice, put<&D::lora, &L::dtype>, "\"f16\"", {}, {"f16", "f32"}},
      {"lora", "init_adapter", path, put<&D::lora, &L::init_adapter>, "\"adapter.gguf\""},

      {"training",
       "trainable",
       choice,
       put<&D::training, &T::trainable>,
       "\"lora\"",
       {},
       {"lora"},
       {"full", "partial", "hybrid"}},
      {"training",
       "optimizer",
       choice,
       put<&D::training, &T::optimizer>,
       "\"adamw\"",
       {},
       {"adamw", "sgd"},
       {"muon", "gefen", "adamw8bit"}},
      {"training", "lr", real, put<&D::training, &T::lr>, "1e-4", {.low = 0, .high = 1e30, .low_open = true}},
      {"training",
       "lr_scheduler",
       choice,
       put<&D::training, &T::lr_scheduler>,
       "\"constant\"",
       {},
       {"constant", "linear", "cosine"}},
      {"training",
       "warmup_steps",
       integer,
       put<&D::training, &T::warmup_steps>,
       "0",
       {.low = 0, .high = kMany}},
      {"training", "weight_decay", real, put<&D::training, &T::weight_decay>, "0.0", {.low = 0, .high = 1}},
      {"training", "max_grad_norm", real, put<&D::training, &T::max_grad_norm>, "1.0", kNotNegative},
      {"training", "seed", integer, put<&D::training, &T::seed>, "42", kNotNegative},
      {"training", "epochs", integer, put<&D::training, &T::epochs>, "1", {.low = 1, .high = 1e9}},
      {"training", "ctx", integer, put<&D::training, &T::ctx>, "128", {.low = 2, .high = kLongestContext}},
      {"training",
       "micro_batch",
       integer,
       put<&D::training, &T::micro_batch>,
       "128",
       {.low = 1, .high = kLongestContext}},
      {"training",
       "gradient_accumulation",
       integer,
       put<&D::training, &T::gradient_accumulation>,
       "1",
       {.low = 1, .high = kLongestContext}},
      {"training",
       "threads",
       integer,
       put<&D::training, &T::threads>,
       "2",
       {.low = 1, .high = 1024},
       {"auto"}},
      {"training", "master_weights", choice, discard, "", {}, {}, {}, kBaseOnly},
      {"training", "kv_dtype", choice, put<&D::training, &T::kv_dtype>, "\"f16\"", {}, {"f16", "f32"}},
      {"training", "gradient_checkpointing", boolean, put<&D::training, &T::gradient_checkpointing>},
      {"training",
       "checkpoint_every_n_layers",
       integer,
       put<&D::training, &T::checkpoint_every_n_layers>,
       "4",
       {.low = 1, .high = 65536}},
      {"training",
       "checkpoint_dtype",
       choice,
       put<&D::training, &T::checkpoint_dtype>,
       "\"f32\"",
       {},
       {"f32", "f16", "bf16"}},
      {"training", "chunked_cross_entropy", boolean, put<&D::training, &T::chunked_cross_entropy>},
      {"training",
       "chunked_ce_tiles",
       integer,
       put<&D::training, &T::chunked_ce_tiles>,
       "8",
       {.low = 1, .high = 65536}},
      {"training",
       "chunked_ce_seq_chunk",
       integer,
       put<&D::training, &T::chunked_ce_seq_chunk>,
       "512",
       {.low = 0, .high = kLongestContext}},
      {"training", "require_gpu_resident", boolean, put<&D::training, &T::require_gpu_resident>, "false"},
      {"training",
       "max_gpu_duty_cycle",
       real,
       put<&D::training, &T::max_gpu_duty_cycle>,
       "1.0",
       {.low = 0, .high = 1, .low_open = true}},

      {"optimizer.adamw", "beta1", real, put<&D::optimizer, &O::beta1>, "0.9", kBelowOne},
      {"optimizer.adamw", "beta2", real, put<&D::optimizer, &O::beta2>, "0.999", kBelowOne},
      {"optimizer.adamw", "eps", real, put<&D::optimizer, &O::eps>, "1e-8", {.low = 1e-30, .high = 1}},

      {"evaluation", "data", path, put<&D::evaluation, &E::data>, "\"heldout.jsonl\""},
      {"evaluation", "every_iterations", integer, put<&D::evaluation, &E::every_iterations>, "1", kCount},
      {"evaluation", "max_examples", integer, put<&D::evaluation, &E::max_examples>, "100", kCount},
      {"evaluation", "patience", integer, put<&D::evaluation, &E::patience>, "3", kCount},
      {"evaluation", "min_delta", real, put<&D::evaluation, &E::min_delta>, "0.0", kNotNegative},

      {"checkpoint", "directory", path, put<&D::checkpoint, &C::directory>, "\"checkpoints\""},
      {"checkpoint",
       "mode",
       choice,
       put<&D::checkpoint, &C::mode>,
       "\"steps\"",
       {},
       {"steps", "best_eval", "steps_and_best_eval"}},
      {"checkpoint", "every_steps", integer, put<&D::checkpoint, &C::every_steps>, "50", kCount},
      {"checkpoint", "keep_last", integer, put<&D::checkpoint, &C::keep_last>, "2", kCount},
      {"checkpoint", "resume_from", path, put<&D::checkpoint, &C::resume_from>,
       "\"checkpoints/step-000000000050.state\""},

      {"metrics", "tensorboard_dir", path, discard, "", {}, {}, {}, kLater},
      {"metrics", "wandb_export_dir", path, discard, "", {}, {}, {}, kLater},
      {"metrics", "jsonl", path, put<&D::metrics, &MetricsSection::jsonl>, "\"metrics.jsonl\""},

      {"sft", "data", path, put<&D::sft, &S::data>, "\"train.jsonl\""},
      {"sft",
       "data_format",
       choice,
       put_data_format,
       "\"jsonl\"",
       {},
       {"text", "txt", "jsonl", "chat", "chat-jsonl"}},
      {"sft", "shuffle", boolean, put<&D::sft, &S::shuffle>},
      {"sft", "packing", boolean, put<&D::sft, &S::packing>},
      {"sft", "overlong", choice, put<&D::sft, &S::overlong>, "\"error\"", {}, {"error", "drop", "truncate"}},
      {"sft", "template_variables", object, put<&D::sft, &S::template_variables>, "{ date = \"today\" }"},
  };
}

struct ForeignName {
  std::string_view theirs;
  std::string_view ours;
};

// Names of other trainers that lie far from ours by spelling.
constexpr ForeignName kForeignNames[] = {
    {"learning_rate", "lr"},
    {"num_train_epochs", "epochs"},
    {"max_seq_length", "ctx"},
    {"max_length", "ctx"},
    {"sequence_len", "ctx"},
    {"context_length", "ctx"},
    {"per_device_train_batch_size", "micro_batch"},
    {"lr_scheduler_type", "lr_scheduler"},
    {"r", "rank"},
    {"lora_r", "rank"},
    {"target_modules", "targets"},
    {"save_steps", "every_steps"},
    {"save_total_limit", "keep_last"},
    {"output_dir", "directory"},
    {"eval_dataset", "data"},
    {"train_file", "data"},
};

std::string words_rule(const std::vector<std::string_view>& words) {
  return words.empty() ? "" : (words.size() > 1 ? " or one of " : " or ") + listed(words);
}

std::string integer_rule(const Bounds& bounds) {
  return bounds.high == kInfinity
             ? fmt::format("a whole number of at least {:.0f}", bounds.low)
             : fmt::format("a whole number from {:.0f} to {:.0f}", bounds.low, bounds.high);
}

std::string real_rule(const Bounds& bounds) {
  if (bounds.low == bounds.high) return fmt::format("{}", bounds.low);
  const std::string low = fmt::format("{} {}", bounds.low_open ? "above" : "of at least", bounds.low);
  if (bounds.high == kInfinity) return "a finite number " + low;
  return fmt::format("a number {} and {} {}", low, bounds.high_open ? "below" : "at most", bounds.high);
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> table = [] {
    std::vector<Key> all = make_keys();
    const std::vector<Key> rollout = rollout_keys();
    all.insert(all.end(), rollout.begin(), rollout.end());
    return all;
  }();
  return table;
}

const std::vector<Section>& sections() {
  constexpr std::string_view kOtherOptimizer =
      "is the table of an optimizer that this build does not have yet; it has adamw and sgd. Remove it";
  constexpr std::string_view kNoJudge = "is a judge, and this build has none yet. Remove it";
  constexpr std::string_view kNotYet = "goes with an algorithm that this build does not have yet. Remove it";
  constexpr unsigned kSft = algorithm_bit(Algorithm::sft), kPpo = algorithm_bit(Algorithm::ppo),
                     kGrpo = algorithm_bit(Algorithm::grpo);
  static const std::vector<Section> table = {
      {"run"},
      {"model"},
      {"output"},
      {"lora"},
      {"training"},
      {"optimizer.adamw"},
      {"optimizer.muon", kOtherOptimizer},
      {"optimizer.gefen", kOtherOptimizer},
      {"optimizer.adamw8bit", kOtherOptimizer},
      {"evaluation", {}, kEveryAlgorithm, [](Document& d) { d.evaluation.emplace(); }},
      {"checkpoint", {}, kEveryAlgorithm, [](Document& d) { d.checkpoint.emplace(); }},
      {"metrics"},
      {"sft", {}, kSft},
      {"trainable",
       "selects base weights, for trainable = \"partial\" or \"hybrid\"; this build trains LoRA adapters "
       "only. "
       "Remove it"},
      {"observe", {}, kPpo | kGrpo, [](Document& d) { d.observe.emplace(); }},
      {"reference", {}, kGrpo, [](Document& d) { d.reference.emplace(); }},
      {"ppo", {}, kPpo},
      {"ppo.critic", {}, kPpo},
      {"ppo.sampling", {}, kPpo},
      {"grpo", {}, kGrpo},
      {"grpo.sampling", {}, kGrpo},
      {"grpo.overlong_penalty", {}, kGrpo, [](Document& d) { d.grpo.overlong_penalty.emplace(); }},
      {"grpo.kl_schedule", {}, kGrpo, [](Document& d) { d.grpo.kl_schedule.emplace(); }},
      {"grpo.dynamic_sampling", {}, kGrpo, [](Document& d) { d.grpo.dynamic_sampling.emplace(); }},
      {"grpo.judge", kNoJudge},
      {"grpo.log_completions",
       "is an older table; completions are written by [observe] with directory = \"observe\". Remove it"},
      {"preference", kNotYet},
      {"distill", kNotYet},
      {"agent", kNotYet},
  };
  return table;
}

std::string_view algorithm_name(Algorithm algorithm) {
  constexpr std::string_view kNames[] = {"sft", "ppo", "grpo"};
  return kNames[static_cast<size_t>(algorithm)];
}

std::string refusal_for(const Section& section, Algorithm algorithm) {
  if (!section.refusal.empty()) return std::string(section.refusal);
  if ((section.algorithms & algorithm_bit(algorithm)) != 0) return {};
  const std::string_view name = algorithm_name(algorithm);
  if (section.name == "observe") {
    return fmt::format("goes with ppo, grpo and agent_grpo, not with {}. Remove it", name);
  }
  if (section.name == "reference") {
    return algorithm == Algorithm::ppo
               ? "is for the KL term of grpo; that of ppo is to the policy that sampled. Remove it"
               : "is for a KL term or a preference loss; an sft run has neither. Remove it";
  }
  return fmt::format("goes with another algorithm; this is {} {} run, whose section is [{}]. Remove it",
                     algorithm == Algorithm::sft ? "an" : "a", name, name);
}

std::string listed(const std::vector<std::string_view>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == choices.size() ? " and " : ", ", choices[i]);
  }
  return text;
}

std::string rule_text(const Key& key) {
  switch (key.kind) {
    case KeyKind::boolean:
      return "true or false";
    case KeyKind::integer:
      return integer_rule(key.bounds) + words_rule(key.choices);
    case KeyKind::real:
      return real_rule(key.bounds);
    case KeyKind::path:
      return "a path (a string that is not empty and has no control characters)";
    case KeyKind::choice:
      return (key.choices.size() > 1 ? "one of " : "") + listed(key.choices);
    case KeyKind::names:
      return "a list of names (strings that are not empty, none twice)";
    case KeyKind::command:
      return "a list of strings, a program and its arguments";
    case KeyKind::object:
      return "a table of strings, numbers, booleans, lists and tables";
  }
  return {};
}

std::string suggestion(std::string_view section, std::string_view name) {
  std::vector<std::string_view> known;
  std::string_view elsewhere;
  for (const Key& key : keys()) {
    if (key.section == section && key.refusal.empty()) known.push_back(key.name);
    if (key.name == name && key.refusal.empty()) elsewhere = key.section;
  }
  if (!elsewhere.empty()) return fmt::format("it is a key of [{}]", elsewhere);
  for (const ForeignName& foreign : kForeignNames) {
    if (foreign.theirs != name) continue;
    for (const std::string_view candidate : known) {
      if (candidate == foreign.ours) return fmt::format("did you mean '{}'?", foreign.ours);
    }
  }
  return fmt::format("did you mean '{}'?", nearest(name, known));
}

}  // namespace retro::run
