#include "run/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/det_math.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "model/adapter.h"
#include "run/checkpoint_folders.h"
#include "run/evaluate.h"
#include "run/interrupt.h"

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

AdapterShape shape_of(const model::AdapterLayout& layout) {
  AdapterShape shape{layout.alpha, std::string(layout.dtype == tensor::DType::F32 ? "F32" : "F16"), {}};
  for (const auto& target : layout.targets) shape.ranks.emplace_back(target.name, target.rank);
  return shape;
}

}  // namespace

Trainer::Trainer(const Document& document, const ModelContext& context, RunRecords records,
                 const LoadedCheckpoint* checkpoint, Reporter& reporter)
    : document_(document), context_(context), reporter_(reporter), records_(std::move(records)) {
  check_output();
  workload_ = make_workload(document_, records_.training,
                            records_.evaluation ? &*records_.evaluation : nullptr, reporter_);
  plan_schedule();
  sign();
  if (checkpoint != nullptr) {
    check_resumable(*checkpoint);
    state_ = TrainState::from_json(checkpoint->state_json);
  }
  make_engine(checkpoint);
  if (checkpoint != nullptr) restore(*checkpoint);
  open_logs(checkpoint != nullptr);
}

void Trainer::sign() {
  fingerprint_ = fingerprint_model(context_, reporter_);
  signature_ = signature(document_);
  signature_.fixed.emplace_back("model (fingerprint)", fingerprint_);
  signature_.fixed.emplace_back("sft.data (content)", records_.training.fingerprint);
  if (records_.evaluation)
    signature_.fixed.emplace_back("evaluation.data (content)", records_.evaluation->fingerprint);
}

void Trainer::make_engine(const LoadedCheckpoint* checkpoint) {
  const int64_t program = program_bytes();
  // A first adapter is no larger than its file, and is read once.
  const bool given = checkpoint == nullptr && document_.lora.init_adapter;
  if (given) adapter_ = first_adapter(document_, context_, fingerprint_, reporter_);
  // A resumed run has its adapter from the checkpoint: lora.init_adapter may have changed since.
  model::AdapterLayout layout =
      checkpoint != nullptr
          ? model::named_targets(context_.model, state_.adapter.ranks,
                                 static_cast<float>(state_.adapter.alpha),
                                 state_.adapter.dtype == "F32" ? tensor::DType::F32 : tensor::DType::F16)
      : given ? adapter_.layout
              : adapter_layout(document_, context_);
  const engine::OptimizerOptions optimizer = optimizer_options(document_);
  engine::EnginePlan plan =
      engine::plan_engine(context_.model, &layout, engine_options(document_, workload_));
  check_fits(document_, context_,
             plan_memory(context_, plan, &layout, optimizer, document_.training.threads, program), workload_,
             program);
  if (!given) adapter_ = model::make_adapter(std::move(layout), document_.lora.seed);
  state_.adapter = shape_of(adapter_.layout);
  device_ = device::make_cpu_device(document_.training.threads);
  engine_ = std::make_unique<engine::Engine>(*device_, &adapter_, std::move(plan));
  optimizer_ =
      std::make_unique<engine::Optimizer>(*device_, optimizer, engine::parameters_of(adapter_.layout));
}

void Trainer::check_output() const {
  for (const auto& file : context_.model.file().files()) {
    std::error_code error;
    if (std::filesystem::equivalent(document_.output.path, file.path(), error)) {
      fail(ErrorKind::config, "{}: is the model's own file, which is never written; name another file",
           place(document_, "output.path"));
    }
  }
  check_writable(document_, "output.path", document_.output.path);
  if (document_.metrics.jsonl) check_writable(document_, "metrics.jsonl", *document_.metrics.jsonl);
}

void Trainer::plan_schedule() {
  total_steps_ = workload_.total_steps;
  schedule_ = {to_kind(document_.training.lr_scheduler), document_.training.lr,
               document_.training.warmup_steps, total_steps_};
  if (schedule_.warmup_steps > 0 && schedule_.warmup_steps >= total_steps_) {
    fail(ErrorKind::config, "{} = {} must be below the {} steps of the run; set at most {}",
         place(document_, "training.warmup_steps"), schedule_.warmup_steps, total_steps_, total_steps_ - 1);
  }
}

void Trainer::check_resumable(const LoadedCheckpoint& checkpoint) const {
  const std::string difference = signature_difference(checkpoint.signature, signature_);
  if (!difference.empty()) {
    fail(ErrorKind::config,
         "{}: cannot be resumed by this document: {}. To start anew from its weights, set lora.init_adapter "
         "= \"{}\" and leave --resume out",
         checkpoint.path.string(), difference,
         checkpoint.path.parent_path().string() + "/" + checkpoint.path.stem().string() + ".gguf");
  }
  for (const std::string& remark : signature_remarks(checkpoint.signature, signature_))
    reporter_.note(remark);
}

void Trainer::restore(const LoadedCheckpoint& checkpoint) {
  const auto weights = std::find_if(checkpoint.buffers.begin(), checkpoint.buffers.end(),
                                    [](const auto& buffer) { return buffer.first == "weights"; });
  if (weights == checkpoint.buffers.end() || weights->second.size() != adapter_.weights.size()) {
    fail(ErrorKind::data, "{}: its weights do not fit this run's adapter", checkpoint.path.string());
  }
  std::copy(weights->second.begin(), weights->second.end(), adapter_.weights.begin());
  optimizer_->restore(state_.step, checkpoint.buffers);
  engine_->refresh_adapter();
  reporter_.note(
      fmt::format("resuming {} at step {} of {}", checkpoint.path.string(), state_.step, total_steps_));
}

void Trainer::open_logs(bool resumed) {
  if (document_.checkpoint) prepare_checkpoint_directory(document_.checkpoint->directory);
  if (!document_.metrics.jsonl) return;
  try {
    metrics_ = MetricsLog(*document_.metrics.jsonl, resumed ? std::optional(state_.step) : std::nullopt,
                          [this](std::string_view text) { reporter_.warn(text); });
  } catch (const Error& error) {
    throw error.within(place(document_, "metrics.jsonl"));
  }
}

TrainResult Trainer::run() {
  while (state_.epoch < document_.training.epochs && !out_of_patience()) {
    if (!run_epoch()) return stop();
  }
  write_adapter(document_.output.path);
  return result(false);
}

TrainResult Trainer::stop() {
  TrainResult stopped = result(true);
  if (timed_tokens_ == 0) {
    // No step was made: what is on disk is as good, and an adapter from an earlier run may be among it.
    stopped.output.clear();
    return stopped;
  }
  if (document_.checkpoint) save_step();
  write_adapter(document_.output.path);
  return stopped;
}

bool Trainer::run_epoch() {
  const std::vector<algo::SftStep> steps = epoch_steps(document_, records_.training.records, state_.epoch);
  const auto count = static_cast<int64_t>(steps.size());
  while (true) {
    if (interrupted()) return false;
    // A run that is resumed may stand behind its epoch's last step, with or without the evaluation.
    if (state_.step_in_epoch < count) {
      run_step(steps[static_cast<size_t>(state_.step_in_epoch++)]);
      if (state_.step_in_epoch == count) report_epoch();
    }
    const bool closing = state_.step_in_epoch >= count;
    if (closing && !close_epoch()) return false;
    const auto& checkpoint = document_.checkpoint;
    if (checkpoint && checkpoint->keeps_steps() && state_.step % *checkpoint->every_steps == 0) save_step();
    if (closing) return true;
  }
}

void Trainer::run_step(const algo::SftStep& step) {
  const auto start = Clock::now();
  const auto sequences = batch_.build(step, records_.training.records);
  engine_->clear_gradient();
  engine_->accumulate(sequences);
  const double sum = batch_.negative_log_likelihood();
  const double loss = sum / static_cast<double>(step.trained);
  const auto at_step = [&] { return fmt::format("step {}", state_.step + 1); };
  if (!std::isfinite(loss)) {
    fail(ErrorKind::data,
         "{}: the loss is not finite; lower training.lr, or set training.max_grad_norm = 1.0{}", at_step(),
         last_checkpoint());
  }
  const double lr = schedule_.rate(state_.step);
  try {
    state_.last_gradient_norm = optimizer_->step(adapter_.weights, engine_->gradient(), lr);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}{}", at_step(), error.what(), last_checkpoint()));
  }
  engine_->refresh_adapter();
  ++state_.step;
  state_.last_loss = loss;
  state_.epoch_loss += sum;
  state_.epoch_tokens += step.trained;
  state_.tokens += step.trained;
  int64_t rows = 0;
  for (const auto& sequence : sequences) rows += sequence.rows();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  seconds_ += seconds;
  timed_tokens_ += rows;
  const std::vector<MetricValue> values = {{"epoch", static_cast<double>(state_.epoch)},
                                           {"train/loss", loss},
                                           {"train/perplexity", det_exp(loss)},
                                           {"optimizer/learning_rate", lr},
                                           {"optimizer/grad_norm", state_.last_gradient_norm},
                                           {"trained_tokens", static_cast<double>(step.trained)},
                                           {"tokens_per_second", static_cast<double>(rows) / seconds}};
  metrics_.write("step", state_.step, values);
  log_debug("step {}: loss {:.6f}, gradient norm {:.4g}, lr {:.3g}, {} rows in {:.3f} s", state_.step, loss,
            state_.last_gradient_norm, lr, rows, seconds);
  reporter_.progress(
      "training", state_.step, total_steps_,
      fmt::format("steps, loss {:.4f}, {:.0f} tok/s", loss, static_cast<double>(rows) / seconds));
}

std::string Trainer::last_checkpoint() const {
  if (!document_.checkpoint) return "";
  const std::vector<uint64_t> steps = checkpoint_steps(document_.checkpoint->directory);
  return steps.empty() ? ""
                       : fmt::format(". The last checkpoint, of step {}, is in {}", steps.front(),
                                     document_.checkpoint->directory.string());
}

void Trainer::report_epoch() {
  const double loss = state_.epoch_loss / static_cast<double>(state_.epoch_tokens);
  reporter_.line(fmt::format("epoch {}: loss {:.4f}, {:.0f} tok/s, lr {:.3g}, peak memory {} MiB",
                             state_.epoch + 1, loss,
                             static_cast<double>(timed_tokens_) / std::max(seconds_, 1e-9),
                             schedule_.rate(state_.step - 1), peak_resident_bytes() >> 20));
  const std::vector<MetricValue> values = {{"epoch", static_cast<double>(state_.epoch)},
                                           {"train/loss", loss}};
  metrics_.write("epoch", state_.step, values);
  const bool last = state_.epoch + 1 == document_.training.epochs;
  state_.evaluation_due =
      document_.evaluation && (last || (state_.epoch + 1) % document_.evaluation->every_iterations == 0);
}

bool Trainer::close_epoch() {
  if (state_.evaluation_due) {
    try {
      run_evaluation();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) return false;
      throw;
    }
  }
  ++state_.epoch;
  state_.step_in_epoch = 0;
  state_.epoch_loss = 0;
  state_.epoch_tokens = 0;
  const bool last = state_.epoch == document_.training.epochs;
  if (out_of_patience() && !last) {
    reporter_.line(fmt::format("stopping: {} evaluations without a gain (evaluation.patience)",
                               state_.evaluations_without_gain));
  }
  return true;
}

void Trainer::run_evaluation() {
  const Loss loss = evaluate(*engine_, records_.evaluation->records, "evaluating", reporter_);
  state_.evaluation_due = false;
  state_.last_evaluation = loss.mean();
  const bool gain = !state_.best_loss || loss.mean() < *state_.best_loss - document_.evaluation->min_delta;
  state_.evaluations_without_gain = gain ? 0 : state_.evaluations_without_gain + 1;
  if (gain) {
    state_.best_loss = loss.mean();
    state_.best_step = state_.step;
  }
  const std::vector<MetricValue> values = {{"epoch", static_cast<double>(state_.epoch)},
                                           {"eval/loss", loss.mean()},
                                           {"eval/perplexity", loss.perplexity()}};
  metrics_.write("eval", state_.step, values);
  reporter_.line(fmt::format("evaluation at step {}: loss {:.4f}, perplexity {:.3f}{}", state_.step,
                             loss.mean(), loss.perplexity(), gain ? " (best so far)" : ""));
  if (gain && document_.checkpoint && document_.checkpoint->keeps_best()) {
    metrics_.sync();
    save_best_checkpoint(document_.checkpoint->directory, checkpoint_content());
  }
}

bool Trainer::out_of_patience() const {
  return document_.evaluation && document_.evaluation->patience &&
         state_.evaluations_without_gain >= *document_.evaluation->patience;
}

CheckpointContent Trainer::checkpoint_content() {
  CheckpointContent content;
  content.step = static_cast<uint64_t>(state_.step);
  content.signature = signature_;
  content.state_json = state_.to_json();
  content.buffers.push_back({"weights", adapter_.weights});
  for (const auto& [name, values] : optimizer_->state()) content.buffers.push_back({name, values});
  content.write_adapter = [this](const std::filesystem::path& path) { write_adapter(path); };
  return content;
}

void Trainer::save_step() {
  metrics_.sync();
  save_step_checkpoint(document_.checkpoint->directory, checkpoint_content(),
                       document_.checkpoint->keep_last);
}

void Trainer::write_adapter(const std::filesystem::path& path) const {
  model::write_adapter(
      path, adapter_, context_.model,
      {fingerprint_, document_hash(document_), document_.lora.seed, static_cast<uint64_t>(state_.step)});
}

TrainResult Trainer::result(bool stopped) {
  TrainResult result;
  result.interrupted = stopped;
  result.steps = state_.step;
  if (state_.step > 0) {
    result.metrics["train/loss"] = state_.last_loss;
    result.metrics["train/perplexity"] = det_exp(state_.last_loss);
    result.metrics["optimizer/grad_norm"] = state_.last_gradient_norm;
  }
  if (state_.last_evaluation) {
    result.metrics["eval/loss"] = *state_.last_evaluation;
    result.metrics["eval/perplexity"] = det_exp(*state_.last_evaluation);
  }
  result.tokens_per_second = seconds_ > 0 ? static_cast<double>(timed_tokens_) / seconds_ : 0;
  result.peak_rss_bytes = peak_resident_bytes();
  result.output = document_.output.path;
  if (document_.checkpoint && document_.checkpoint->keeps_best() && state_.best_loss) {
    result.best = best_adapter_path(document_.checkpoint->directory);
  }
  return result;
}

}  // namespace retro::run
