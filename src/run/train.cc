#include "run/train.h"

#include <fmt/format.h>

#include "base/error.h"
#include "run/checkpoint.h"
#include "run/checkpoint_folders.h"
#include "run/rollout_data.h"
#include "run/rollout_trainer.h"
#include "run/setup.h"
#include "run/trainer.h"
#include "run/training_data.h"

namespace retro::run {

namespace {

std::filesystem::path find_checkpoint(const Document& document, const TrainOptions& options) {
  if (options.state) return *options.state;
  if (document.checkpoint && document.checkpoint->resume_from && !options.resume) {
    return *document.checkpoint->resume_from;
  }
  if (!document.checkpoint) {
    fail(ErrorKind::config,
         "{}: has no [checkpoint] section, so there is nothing to resume; name a state folder",
         document.path.string());
  }
  const auto newest = newest_checkpoint(document.checkpoint->directory);
  if (!newest) {
    fail(ErrorKind::config, "{}: holds no checkpoint to resume; leave --resume out to start",
         document.checkpoint->directory.string());
  }
  return *newest;
}

// Its later steps would pass for this run's.
void refuse_earlier_run(const Document& document) {
  const auto& directory = document.checkpoint->directory;
  const std::vector<uint64_t> steps = checkpoint_steps(directory);
  if (steps.empty() && !existing_state(best_state_path(directory))) return;
  fail(ErrorKind::config,
       "{}: {} holds checkpoints of an earlier run{}. Add --resume to go on with it; to start anew remove "
       "them, or "
       "name another folder",
       place(document, "checkpoint.directory"), directory.string(),
       steps.empty() ? "" : fmt::format(", to step {}", steps.front()));
}

TrainResult roll_out(const Document& document, const TrainOptions& options, bool resume, Reporter& reporter) {
  const PromptFiles files = open_prompts(document);
  const ModelContext context = open_model(document);
  warn_of_long_context(document, context, reporter);
  if (options.probe != nullptr) options.probe->milestone("model");
  RolloutPrompts prompts = load_prompts(files, document, context);
  if (options.probe != nullptr) options.probe->milestone("data");
  std::optional<LoadedCheckpoint> checkpoint;
  if (resume) checkpoint = load_checkpoint(find_checkpoint(document, options));
  const auto trainer = make_rollout_trainer(document, context, std::move(prompts),
                                            checkpoint ? &*checkpoint : nullptr, reporter, options.probe);
  if (options.probe != nullptr) options.probe->milestone("adapter");
  checkpoint.reset();
  if (options.on_start) options.on_start();
  return trainer->run();
}

}  // namespace

TrainResult train(const Document& document, const TrainOptions& options, Reporter& reporter) {
  for (const std::string& warning : document.warnings) reporter.warn(warning);
  for (const std::string& note : document.notes) reporter.note(note);
  const bool resume = options.resume || (document.checkpoint && document.checkpoint->resume_from);
  if (!resume && document.checkpoint) refuse_earlier_run(document);
  if (document.rolls_out()) return roll_out(document, options, resume, reporter);
  const DataFiles files = open_data(document);
  const ModelContext context = open_model(document);
  warn_of_long_context(document, context, reporter);
  RunRecords records = load_records(files, document, context, reporter);
  std::optional<LoadedCheckpoint> checkpoint;
  if (resume) checkpoint = load_checkpoint(find_checkpoint(document, options));
  Trainer trainer(document, context, std::move(records), checkpoint ? &*checkpoint : nullptr, reporter);
  checkpoint.reset();
  if (options.on_start) options.on_start();
  return trainer.run();
}

}  // namespace retro::run
