// A small run that samples answers: a toy model, prompts, a reward program in shell, a document.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "run/document.h"
#include "run/train.h"
#include "tests/e2e/toy_run.h"

namespace retro::test {

/// Rewards an answer by the length of its line and logs each request to reward.log. Speaks both modes.
inline const std::string kGoodReward = R"SH(#!/bin/sh
while IFS= read -r line; do
  case $line in
    '{"prompt":'*'"_retrograd_batch":'*)
      rest=${line##*',"_retrograd_batch":'}
      line=${line%',"_retrograd_batch":'*}
      printf '%s\n' "$line" >> "$(dirname "$0")/reward.log"
      printf '{"reward":%s,"_retrograd_batch":%s\n' "$((${#line} % 5))" "$rest"
      ;;
    '{"prompt":'*)
      line=${line%?}
      printf '%s\n' "$line" >> "$(dirname "$0")/reward.log"
      printf '{"reward":%s}\n' "$((${#line} % 5))"
      ;;
    *) printf '%s\n' "$line" ;;
  esac
done
)SH";

/// Sections of a document as text.
struct RolloutDocument {
  std::string algorithm = "grpo";
  std::string own;       // keys behind the required ones of [grpo] or [ppo]
  std::string training;  // keys behind ctx and lr
  std::string rest;      // further sections
  int updates = 4;
  int max_new_tokens = 12;
  double kl_coefficient = 0.05;

  std::string text() const {
    const bool grpo = algorithm == "grpo";
    const std::string sizes = grpo ? "prompts_per_update = 2\ngroup_size = 3\ngrpo_epochs = "
                                     "2\nclip_range_low = 0.2\nclip_range_high = 0.28\n"
                                   : "rollout_batch_size = 6\nppo_epochs = 2\nclip_range = 0.2\n";
    return fmt::format(
        "[run]\nalgorithm = \"{0}\"\n[model]\npath = \"model.gguf\"\n[output]\npath = "
        "\"adapter.gguf\"\n[lora]\n"
        "rank = 4\nalpha = 8.0\n[training]\nctx = 128\nmicro_batch = 128\nlr = 1e-2\n{1}[{0}]\n"
        "prompts = \"prompts.jsonl\"\nreward_command = [\"sh\", \"reward.sh\"]\nupdates = {2}\n"
        "kl_coefficient = {3}\n{4}{5}[{0}.sampling]\ntemperature = 1.0\ntop_p = 1.0\nmax_new_tokens = "
        "{6}\nseed = 3\n{7}",
        algorithm, training, updates, kl_coefficient, sizes, own, max_new_tokens, rest);
  }
};

/// The working directory, for as long as this lives.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::filesystem::path& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  std::filesystem::path before_;
};

/// A folder with model.gguf, prompts.jsonl, heldout.jsonl and reward.sh.
class RolloutRun {
 public:
  explicit RolloutRun(const std::string& reward = kGoodReward) {
    std::string prompts, heldout;
    for (int i = 0; i < 5; ++i)
      prompts += chat_line({fmt::format("question {}{}?", i, std::string(static_cast<size_t>(i), 'x'))});
    for (int i = 0; i < 3; ++i) heldout += chat_line({fmt::format("held out {}?", i)});
    toy_.put("prompts.jsonl", prompts);
    toy_.put("heldout.jsonl", heldout);
    put("reward.sh", reward);
  }

  void put(const std::string& name, const std::string& text) const { toy_.put(name, text); }
  std::string get(const std::filesystem::path& name) const { return toy_.get(name); }
  const std::filesystem::path& path() const { return toy_.path(); }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return toy_ / name; }

  run::TrainResult train(const std::string& document, run::Reporter& reporter,
                         const run::TrainOptions& options = {}) const {
    const run::Document parsed = run::parse_document(document, path() / "run.toml");
    const WorkingDirectory here(path());  // where reward.sh is looked for
    return run::train(parsed, options, reporter);
  }
  run::TrainResult train(const RolloutDocument& document, run::Reporter& reporter,
                         const run::TrainOptions& options = {}) const {
    return train(document.text(), reporter, options);
  }
  run::TrainResult train(const RolloutDocument& document, const run::TrainOptions& options = {}) const {
    run::SilentReporter silent;
    return train(document, silent, options);
  }
  /// A hash of the adapter that was written.
  std::string adapter_hash() const { return hash_hex(get("adapter.gguf")); }
  /// The same of the one that `document` trains.
  std::string trained_hash(const RolloutDocument& document) const {
    train(document);
    return adapter_hash();
  }
  /// The prompts and answers that the reward program saw, in their order, one a line.
  std::string scored() const { return get("reward.log"); }

 private:
  ToyRun toy_{{}, ""};
};

}  // namespace retro::test
