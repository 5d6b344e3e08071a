#include "run/training_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "run/checkpoint_folders.h"

namespace retro::run {

namespace {

algo::ScheduleKind to_kind(Schedule schedule) {
  return schedule == Schedule::linear   ? algo::ScheduleKind::linear
         : schedule == Schedule::cosine ? algo::ScheduleKind::cosine
                                        : algo::ScheduleKind::constant;
}

// Refuses a path that the end of the run could not write, by the errors that a writer would meet.
void check_writable(const Document& document, std::string_view key, const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::config, "{}: {}", place(document, key), why);
  };
  std::error_code error;
  const auto folder = path.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    refuse(fmt::format("the folder '{}' does not exist; create it, or name another file", folder.string()));
  }
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    refuse(fmt::format("{} is a folder; name a file in it, as {}", path.string(),
                       (path / "adapter.gguf").string()));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    refuse(fmt::format("{} is no regular file; name another one", path.string()));
  }
  try {
    const OutputFile probe(path);  // removed again: it is never committed
  } catch (const Error& failure) {
    throw Error(ErrorKind::config, fmt::format("{}: {}", place(document, key), failure.what()));
  }
}

}  // namespace

TrainingRun::TrainingRun(const Document& d, const ModelContext& c, Reporter& r)
    : document(d), context(c), reporter(r) {
  for (const auto& file : context.model.file().files()) {
    std::error_code error;
    if (std::filesystem::equivalent(document.output.path, file.path(), error)) {
      fail(ErrorKind::config, "{}: is the model's own file, which is never written; name another file",
           place(document, "output.path"));
    }
  }
  check_writable(document, "output.path", document.output.path);
  if (document.metrics.jsonl) check_writable(document, "metrics.jsonl", *document.metrics.jsonl);
}

void TrainingRun::sign(const std::vector<std::pair<std::string, std::string>>& content) {
  fingerprint = fingerprint_model(context, reporter);
  signature = run::signature(document);
  signature.fixed.emplace_back("model (fingerprint)", fingerprint);
  for (const auto& [name, print] : content) signature.fixed.emplace_back(name, print);
}

void TrainingRun::check_resumable(const LoadedCheckpoint& checkpoint) const {
  const std::string difference = signature_difference(checkpoint.signature, signature);
  if (!difference.empty()) {
    fail(ErrorKind::config,
         "{}: cannot be resumed by this document: {}. To start anew from its weights, set lora.init_adapter "
         "= \"{}\" and leave --resume out",
         checkpoint.path.string(), difference,
         checkpoint.path.parent_path().string() + "/" + checkpoint.path.stem().string() + ".gguf");
  }
  for (const std::string& remark : signature_remarks(checkpoint.signature, signature)) reporter.note(remark);
}

void TrainingRun::plan_schedule(int64_t total_steps) {
  schedule = {to_kind(document.training.lr_scheduler), document.training.lr, document.training.warmup_steps,
              total_steps};
  if (schedule.warmup_steps > 0 && schedule.warmup_steps >= total_steps) {
    fail(ErrorKind::config, "{} = {} must be below the {} steps of the run; set at most {}",
         place(document, "training.warmup_steps"), schedule.warmup_steps, total_steps, total_steps - 1);
  }
}

model::AdapterLayout TrainingRun::layout(const LoadedCheckpoint* checkpoint, const AdapterShape& shape) {
  // A resumed run has its adapter from the checkpoint: lora.init_adapter may have changed since.
  if (checkpoint != nullptr) {
    return model::named_targets(context.model, shape.ranks, static_cast<float>(shape.alpha),
                                shape.dtype == "F32" ? tensor::DType::F32 : tensor::DType::F16);
  }
  given = document.lora.init_adapter.has_value();
  if (!given) return adapter_layout(document, context);
  // A first adapter is no larger than its file, and is read once.
  adapter = first_adapter(document, context, fingerprint, reporter);
  return adapter.layout;
}

void TrainingRun::make(model::AdapterLayout layout, Probe* probe) {
  if (!given) adapter = model::make_adapter(std::move(layout), document.lora.seed);
  device = device::make_cpu_device(document.training.threads);
  if (probe != nullptr) device = probe->wrap(std::move(device));
  optimizer = std::make_unique<engine::Optimizer>(*device, optimizer_options(document),
                                                  engine::parameters_of(adapter.layout));
}

void TrainingRun::restore(const LoadedCheckpoint& checkpoint, int64_t optimizer_steps) {
  const auto weights =
      std::ranges::find(checkpoint.buffers, "weights", &std::pair<std::string, std::vector<float>>::first);
  if (weights == checkpoint.buffers.end() || weights->second.size() != adapter.weights.size()) {
    fail(ErrorKind::data, "{}: its weights do not fit this run's adapter", checkpoint.path.string());
  }
  std::copy(weights->second.begin(), weights->second.end(), adapter.weights.begin());
  optimizer->restore(optimizer_steps, checkpoint.buffers);
}

void TrainingRun::open_logs(std::optional<int64_t> step) {
  if (document.checkpoint) prepare_checkpoint_directory(document.checkpoint->directory);
  if (!document.metrics.jsonl) return;
  try {
    metrics =
        MetricsLog(*document.metrics.jsonl, step, [this](std::string_view text) { reporter.warn(text); });
  } catch (const Error& error) {
    throw error.within(place(document, "metrics.jsonl"));
  }
}

double TrainingRun::update_weights(std::span<const float> gradient, double lr, int64_t step) {
  try {
    return optimizer->step(adapter.weights, gradient, lr);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("step {}: {}{}", step, error.what(), last_checkpoint()));
  }
}

std::string TrainingRun::last_checkpoint() const {
  if (!document.checkpoint) return "";
  const std::vector<uint64_t> steps = checkpoint_steps(document.checkpoint->directory);
  return steps.empty() ? ""
                       : fmt::format(". The last checkpoint, of step {}, is in {}", steps.front(),
                                     document.checkpoint->directory.string());
}

AdapterShape TrainingRun::adapter_shape() const {
  const model::AdapterLayout& layout = adapter.layout;
  AdapterShape shape{layout.alpha, std::string(layout.dtype == tensor::DType::F32 ? "F32" : "F16"), {}};
  for (const auto& target : layout.targets) shape.ranks.emplace_back(target.name, target.rank);
  return shape;
}

CheckpointContent TrainingRun::checkpoint_content(int64_t step, std::string state_json) {
  CheckpointContent content;
  content.step = static_cast<uint64_t>(step);
  content.signature = signature;
  content.state_json = std::move(state_json);
  content.buffers.push_back({"weights", adapter.weights});
  for (const auto& [name, values] : optimizer->state()) content.buffers.push_back({name, values});
  content.write_adapter = [this, step](const std::filesystem::path& path) { write_adapter(path, step); };
  return content;
}

void TrainingRun::save_step(const CheckpointContent& content) {
  metrics.sync();
  save_step_checkpoint(document.checkpoint->directory, content, document.checkpoint->keep_last);
}

void TrainingRun::save_best(const CheckpointContent& content) {
  metrics.sync();
  save_best_checkpoint(document.checkpoint->directory, content);
}

void TrainingRun::write_adapter(const std::filesystem::path& path, int64_t step) const {
  model::write_adapter(
      path, adapter, context.model,
      {fingerprint, document_hash(document), document.lora.seed, static_cast<uint64_t>(step)});
}

}  // namespace retro::run
