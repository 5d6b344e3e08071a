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

Trainer::Trainer(const Document& document, const ModelContext& context, RunRecords records,
                 const LoadedCheckpoint* checkpoint, Reporter& reporter)
    : document_(document),
      reporter_(reporter),
      records_(std::move(records)),
      run_(document, context, reporter) {
  workload_ = make_workload(document_, records_.training,
                            records_.evaluation ? &*records_.evaluation : nullptr, reporter_);
  total_steps_ = workload_.total_steps;
  run_.plan_schedule(total_steps_);
  std::vector<std::pair<std::string, std::string>> content = {
      {"sft.data (content)", records_.training.fingerprint}};
  if (records_.evaluation)
    content.emplace_back("evaluation.data (content)", records_.evaluation->fingerprint);
  run_.sign(content);
  if (checkpoint != nullptr) {
    run_.check_resumable(*checkpoint);
    state_ = TrainState::from_json(checkpoint->state_json);
  }
  make_engine(checkpoint);
  if (checkpoint != nullptr) restore(*checkpoint);
  run_.open_logs(checkpoint != nullptr ? std::optional(state_.step) : std::nullopt);
}

void Trainer::make_engine(const LoadedCheckpoint* checkpoint) {
  const int64_t program = program_bytes();
  model::AdapterLayout layout = run_.layout(checkpoint, state_.adapter);
  engine::EnginePlan plan =
      engine::plan_engine(run_.context.model, &layout, engine_options(document_, workload_));
  check_fits(document_, run_.context,
             plan_memory(run_.context, plan, &layout, optimizer_options(document_).kind,
                         document_.training.threads, program),
             workload_, program);
  run_.make(std::move(layout));
  state_.adapter = run_.adapter_shape();
  engine_ = std::make_unique<engine::Engine>(*run_.device, &run_.adapter, std::move(plan));
}

void Trainer::restore(const LoadedCheckpoint& checkpoint) {
  run_.restore(checkpoint, state_.step);
  engine_->refresh_adapter();
  reporter_.note(
      fmt::format("resuming {} at step {} of {}", checkpoint.path.string(), state_.step, total_steps_));
}

TrainResult Trainer::run() {
  while (state_.epoch < document_.training.epochs && !out_of_patience()) {
    if (!run_epoch()) return stop();
  }
  run_.write_adapter(document_.output.path, state_.step);
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
  run_.write_adapter(document_.output.path, state_.step);
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
  if (!std::isfinite(loss)) {
    fail(ErrorKind::data,
         "step {}: the loss is not finite; lower training.lr, or set training.max_grad_norm = 1.0{}",
         state_.step + 1, run_.last_checkpoint());
  }
  const double lr = run_.schedule.rate(state_.step);
  state_.last_gradient_norm = run_.update_weights(engine_->gradient(), lr, state_.step + 1);
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
  run_.metrics.write("step", state_.step, values);
  log_debug("step {}: loss {:.6f}, gradient norm {:.4g}, lr {:.3g}, {} rows in {:.3f} s", state_.step, loss,
            state_.last_gradient_norm, lr, rows, seconds);
  reporter_.progress(
      "training", state_.step, total_steps_,
      fmt::format("steps, loss {:.4f}, {:.0f} tok/s", loss, static_cast<double>(rows) / seconds));
}

void Trainer::report_epoch() {
  const double loss = state_.epoch_loss / static_cast<double>(state_.epoch_tokens);
  reporter_.line(fmt::format("epoch {}: loss {:.4f}, {:.0f} tok/s, lr {:.3g}, peak memory {} MiB",
                             state_.epoch + 1, loss,
                             static_cast<double>(timed_tokens_) / std::max(seconds_, 1e-9),
                             run_.schedule.rate(state_.step - 1), peak_resident_bytes() >> 20));
  const std::vector<MetricValue> values = {{"epoch", static_cast<double>(state_.epoch)},
                                           {"train/loss", loss}};
  run_.metrics.write("epoch", state_.step, values);
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
  run_.metrics.write("eval", state_.step, values);
  reporter_.line(fmt::format("evaluation at step {}: loss {:.4f}, perplexity {:.3f}{}", state_.step,
                             loss.mean(), loss.perplexity(), gain ? " (best so far)" : ""));
  if (gain && document_.checkpoint && document_.checkpoint->keeps_best()) {
    run_.save_best(run_.checkpoint_content(state_.step, state_.to_json()));
  }
}

bool Trainer::out_of_patience() const {
  return document_.evaluation && document_.evaluation->patience &&
         state_.evaluations_without_gain >= *document_.evaluation->patience;
}

void Trainer::save_step() {
  run_.save_step(run_.checkpoint_content(state_.step, state_.to_json()));
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
