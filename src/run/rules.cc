#include "run/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string>
#include <system_error>

#include "base/thread_pool.h"
#include "run/rollout_rules.h"
#include "run/toml_file.h"

namespace retro::run {

namespace {

class Rules {
 public:
  Rules(Document& document, const Overrides& overrides, Faults& faults)
      : document_(document), overrides_(overrides), faults_(faults) {}

  void apply() {
    check_required();
    check_lora();
    if (document_.rolls_out()) {
      derive_rollout_step(document_, faults_);
    } else {
      derive_step(document_, faults_);
    }
    if (!given("training.seed")) document_.training.seed = document_.lora.seed;
    check_levers();
    check_evaluation_and_checkpoints();
    check_gpu_keys();
    if (document_.rolls_out()) apply_rollout_rules(document_, faults_);
    derive_threads();
    apply_device_override();
    check_paths();
  }

 private:
  bool given(std::string_view key) const { return document_.given(key); }
  /// Set in the text, whether its value was good or not.
  bool present(std::string_view key) const { return given(key) || faults_.broken(key); }

  Position at(std::string_view key) const {
    const auto found = document_.positions.find(key);
    return found == document_.positions.end() ? Position{} : found->second;
  }

  void require(std::string_view section, std::string_view key, std::string_view example) {
    if (present(fmt::format("{}.{}", section, key))) return;
    faults_.add(at(section), fmt::format("[{}].{} is required, as {} = {}", section, key, key, example));
  }

  void refuse(std::string_view key, std::string_view reason) {
    if (!given(key)) return;
    const size_t dot = key.rfind('.');
    faults_.add(at(key), fmt::format("[{}].{} {}", key.substr(0, dot), key.substr(dot + 1), reason));
  }

  void check_required();
  void check_lora();
  void check_levers();
  void check_evaluation_and_checkpoints();
  void check_gpu_keys();
  void check_paths();
  void derive_threads();
  void apply_device_override();

  Document& document_;
  const Overrides& overrides_;
  Faults& faults_;
};

void Rules::check_required() {
  if (!overrides_.model) {
    require("model", "path", "\"model.gguf\" (or give --model on the command line)");
  }
  if (!document_.rolls_out()) require("sft", "data", "\"train.jsonl\"");
  if (!present("lora.output")) {
    require("output", "path", "\"adapter.gguf\"");
  } else if (present("output.path")) {
    faults_.add(at("lora.output"),
                "[lora].output is the older spelling of [output].path, which is set as well. Remove it");
  }
  if (!given("lora") && !faults_.broken("training.trainable")) {
    faults_.add({}, "trainable = \"lora\" needs a [lora] section; an empty one takes the defaults");
  }
  if (given("evaluation")) require("evaluation", "data", "\"heldout.jsonl\"");
  if (given("checkpoint")) {
    require("checkpoint", "directory", "\"checkpoints\"");
    require("checkpoint", "mode", "\"steps\"");
  }
}

void Rules::check_lora() {
  if (present("lora.init_adapter")) {
    for (const char* key : {"lora.rank", "lora.alpha", "lora.targets", "lora.dtype"}) {
      refuse(key, "is that of the file in init_adapter and cannot be set beside it. Remove it");
    }
  }
  if (!given("lora.targets")) return;
  const std::vector<std::string>& targets = document_.lora.targets;
  if (targets.empty()) {
    faults_.add(at("lora.targets"),
                "[lora].targets = []: names at least one tensor, as targets = [\"q\", \"v\"]");
  }
  if (targets.size() > 1 && std::count(targets.begin(), targets.end(), "auto") > 0) {
    faults_.add(at("lora.targets"),
                "[lora].targets: \"auto\" already is every 2-D block weight and stands alone, as targets = "
                "[\"auto\"]");
  }
}

void Rules::check_levers() {
  const TrainingSection& training = document_.training;
  if (!training.gradient_checkpointing && !faults_.broken("training.gradient_checkpointing")) {
    for (const char* key : {"training.checkpoint_dtype", "training.checkpoint_every_n_layers"}) {
      refuse(key, "is read only with gradient_checkpointing = true. Set that, or remove it");
    }
  }
  if (!training.chunked_cross_entropy) {
    for (const char* key : {"training.chunked_ce_tiles", "training.chunked_ce_seq_chunk"}) {
      refuse(key, "is read only with chunked_cross_entropy = true. Set that, or remove it");
    }
  }
  if (training.optimizer != OptimizerKind::adamw && !faults_.broken("training.optimizer") &&
      given("optimizer.adamw")) {
    faults_.add(at("optimizer.adamw"),
                "[optimizer.adamw] is the table of an optimizer that is not chosen (optimizer = \"sgd\"). "
                "Remove it, or "
                "set optimizer = \"adamw\"");
  }
}

void Rules::check_evaluation_and_checkpoints() {
  if (!document_.checkpoint || !given("checkpoint.mode")) return;
  const CheckpointSection& checkpoint = *document_.checkpoint;
  if (checkpoint.keeps_best() && !given("evaluation")) {
    faults_.add(
        at("checkpoint.mode"),
        "[checkpoint].mode keeps the best evaluation, but there is no [evaluation] section. Add one with "
        "data = \"heldout.jsonl\", or set mode = \"steps\"");
  }
  if (checkpoint.keeps_steps()) {
    require("checkpoint", "every_steps", "50");
  } else {
    for (const char* key : {"checkpoint.every_steps", "checkpoint.keep_last"}) {
      refuse(key,
             "is for step checkpoints; mode = \"best_eval\" writes none. Remove it, or set mode = "
             "\"steps_and_best_eval\"");
    }
  }
}

void Rules::check_gpu_keys() {
  TrainingSection& training = document_.training;
  if (training.require_gpu_resident) {
    faults_.add(
        at("training.require_gpu_resident"),
        "[training].require_gpu_resident = true: this build trains on the CPU only, so nothing would be "
        "resident. Set it to false");
  }
  const char* resident = std::getenv("RETRO_REQUIRE_GPU_RESIDENT");
  if (resident != nullptr && std::string_view(resident) == "1") {
    faults_.add(
        {},
        "the environment variable RETRO_REQUIRE_GPU_RESIDENT = \"1\": this build trains on the CPU only, "
        "so nothing would be resident. Unset it");
  }
  if (given("training.max_gpu_duty_cycle") && training.max_gpu_duty_cycle < 1.0) {
    document_.warnings.push_back(fmt::format("{} = {} has no effect on the CPU",
                                             place(document_, "training.max_gpu_duty_cycle"),
                                             training.max_gpu_duty_cycle));
  }
}

void Rules::derive_threads() {
  constexpr int kMostThreads = 1024;
  if (const char* text = std::getenv("RETRO_THREADS"); text != nullptr && *text != '\0') {
    const std::string_view digits = text;
    int threads = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), threads);
    if (error != std::errc{} || end != digits.end() || threads < 1 || threads > kMostThreads) {
      faults_.add(
          {}, fmt::format("the environment variable RETRO_THREADS = \"{}\": must be a whole number from 1 to "
                          "{}, as RETRO_THREADS=2",
                          text, kMostThreads));
      return;
    }
    document_.training.threads = threads;
    return;
  }
  // The word "auto" is stored as 0.
  if (!given("training.threads") || document_.training.threads == 0)
    document_.training.threads = default_threads();
}

void Rules::apply_device_override() {
  if (!overrides_.device) return;
  const std::string& device = *overrides_.device;
  if (device == "auto") {
    document_.model.device = DeviceChoice::automatic;
  } else if (device == "cpu") {
    document_.model.device = DeviceChoice::cpu;
  } else if (device == "gpu") {
    faults_.add({}, "--device gpu: this build has no GPU device yet; use --device cpu");
  } else {
    faults_.add({}, fmt::format("--device {}: must be auto, cpu or gpu, as --device cpu", device));
  }
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error) && !error) return true;
  const auto full_a = std::filesystem::absolute(a, error).lexically_normal();
  const auto full_b = std::filesystem::absolute(b, error).lexically_normal();
  return full_a == full_b;
}

struct NamedPath {
  std::string_view key;
  std::filesystem::path path;
};

void Rules::check_paths() {
  std::vector<NamedPath> reads = {{"model.path", document_.model.path},
                                  {"sft.data", document_.sft.data},
                                  {"ppo.prompts", document_.ppo.prompts},
                                  {"grpo.prompts", document_.grpo.prompts}};
  std::vector<NamedPath> writes = {
      {given("lora.output") ? "lora.output" : "output.path", document_.output.path}};
  if (document_.lora.init_adapter) reads.push_back({"lora.init_adapter", *document_.lora.init_adapter});
  if (document_.evaluation) reads.push_back({"evaluation.data", document_.evaluation->data});
  if (document_.reference) reads.push_back({"reference.model", document_.reference->model});
  if (document_.observe) writes.push_back({"observe.directory", document_.observe->directory});
  if (document_.metrics.jsonl) writes.push_back({"metrics.jsonl", *document_.metrics.jsonl});
  if (document_.checkpoint) writes.push_back({"checkpoint.directory", document_.checkpoint->directory});
  const auto clash = [&](const NamedPath& write, std::string_view what) {
    faults_.add(at(write.key),
                fmt::format("{} = {}: is also {}, which the run would overwrite. Name another path",
                            write.key, quote(write.path.string()), what));
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    if (writes[i].path.empty()) continue;
    if (same_file(writes[i].path, document_.path)) clash(writes[i], "the run document itself");
    for (const NamedPath& read : reads) {
      if (!read.path.empty() && same_file(writes[i].path, read.path)) clash(writes[i], read.key);
    }
    for (size_t j = 0; j < i; ++j) {
      if (same_file(writes[i].path, writes[j].path)) clash(writes[i], writes[j].key);
    }
  }
}

}  // namespace

void apply_rules(Document& document, const Overrides& overrides, Faults& faults) {
  Rules(document, overrides, faults).apply();
}

}  // namespace retro::run
