#include "run/rollout_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "run/checkpoint_folders.h"
#include "run/grpo_trainer.h"
#include "run/interrupt.h"
#include "run/ppo_trainer.h"

namespace retro::run {

namespace {

void check_same_tokens(const Document& document, const text::Tokenizer& ours, const text::Tokenizer& theirs) {
  const auto& a = ours.vocabulary();
  const auto& b = theirs.vocabulary();
  const auto shared = static_cast<text::TokenId>(std::min(ours.size(), theirs.size()));
  for (text::TokenId id = 0; id < shared; ++id) {
    if (a.text(id) == b.text(id)) continue;
    fail(ErrorKind::config,
         "{}: its tokenizer is another one: token {} is '{}' there and '{}' in the trained model; name a "
         "model "
         "of the same family",
         place(document, "reference.model"), id, b.text(id), a.text(id));
  }
  if (ours.size() == theirs.size()) return;
  fail(ErrorKind::config,
       "{}: its vocabulary has {} tokens, the trained model's {}; name a model of the same family",
       place(document, "reference.model"), theirs.size(), ours.size());
}

}  // namespace

RolloutTrainer::RolloutTrainer(const Document& document, const ModelContext& context, RolloutPrompts prompts,
                               const LoadedCheckpoint* checkpoint, Reporter& reporter)
    : document_(document),
      context_(context),
      reporter_(reporter),
      prompts_(std::move(prompts)),
      run_(document, context, reporter) {
  rewards_ = std::make_unique<reward::RewardProgram>(reward_options(document));
  run_.plan_schedule(document.nominal_steps());
  const std::string key = document.run.algorithm == Algorithm::ppo ? "ppo" : "grpo";
  std::vector<std::pair<std::string, std::string>> content = {
      {key + ".prompts (content)", prompts_.fingerprint}};
  if (document.evaluation) content.emplace_back("evaluation.data (content)", prompts_.evaluation_fingerprint);
  if (document.reference) {
    reference_model_ = std::make_unique<ModelContext>(document.reference->model);
    check_same_tokens(document, context.tokenizer, reference_model_->tokenizer);
    content.emplace_back("reference (fingerprint)", fingerprint_model(*reference_model_, reporter));
  }
  run_.sign(content);
  if (checkpoint != nullptr) {
    run_.check_resumable(*checkpoint);
    state_ = RolloutState::from_json(checkpoint->state_json);
  }
}

void RolloutTrainer::load_reference(const LoadedCheckpoint* checkpoint) {
  if (document_.reference || document_.rollout().kl_coefficient == 0) return;
  if (document_.run.algorithm == Algorithm::ppo) return;  // its KL is to the behaviour
  if (checkpoint == nullptr) {
    if (run_.given) reference_adapter_ = run_.adapter;
    reporter_.note(run_.given ? "the reference is the model with lora.init_adapter, as the run begins"
                              : "the reference is the model without an adapter, as the run begins");
    return;
  }
  const auto kept =
      std::ranges::find(checkpoint->buffers, "reference", &std::pair<std::string, std::vector<float>>::first);
  if (kept == checkpoint->buffers.end()) return;
  reference_adapter_ = run_.adapter;
  if (kept->second.size() != run_.adapter.weights.size())
    fail(ErrorKind::data, "{}: its reference does not fit this run's adapter", checkpoint->path.string());
  std::ranges::copy(kept->second, reference_adapter_->weights.begin());
}

engine::EngineOptions RolloutTrainer::engine_options_of(bool train) const {
  const int64_t micro_batch = document_.training.micro_batch;
  const int64_t rows = engine::TreeSets::most_rows(prompts_.longest(), answers_per_step(),
                                                   document_.rollout().sampling.max_new_tokens,
                                                   fanout_of(document_), static_cast<int32_t>(micro_batch));
  engine::EngineOptions options = engine_options(document_, single_record(static_cast<int32_t>(rows)));
  options.train = train;
  options.temperature = static_cast<float>(document_.rollout().sampling.temperature);
  return options;
}

void RolloutTrainer::check_memory(const model::AdapterLayout& layout) {
  const int64_t program = program_bytes();
  const engine::EnginePlan training = engine::plan_engine(context_.model, &layout, engine_options_of(true));
  const engine::EnginePlan sampling = engine::plan_generator(
      context_.model, &layout,
      generator_options(document_, context_, prompts_.longest(),
                        std::max<int64_t>(document_.answers_per_update(),
                                          static_cast<int64_t>(prompts_.evaluation.size()))));
  probe_->planned("step", training.parts);
  probe_->planned("sampling", sampling.parts);
  // The two are never there at once.
  const engine::EnginePlan& larger = sampling.bytes() > training.bytes() ? sampling : training;
  const MemoryPlan plan = plan_memory(context_, larger, &layout, optimizer_options(document_).kind,
                                      document_.training.threads, program);
  const int64_t available = available_bytes() + anonymous_bytes();
  if (plan.total() <= available) return;
  fail(ErrorKind::config,
       "{}: the run takes {} MiB ({}) and {} MiB are available; lower training.{} (now {}){}",
       document_.path.string(), plan.total() >> 20, &larger == &sampling ? "while sampling" : "in a step",
       available >> 20, &larger == &sampling ? "generation_concurrency" : "micro_batch",
       &larger == &sampling ? document_.training.generation_concurrency : document_.training.micro_batch,
       &larger == &sampling ? "" : ", or set training.gradient_checkpointing = true");
}

void RolloutTrainer::prepare(const LoadedCheckpoint* checkpoint, Probe* probe) {
  if (probe != nullptr) probe_ = probe;
  model::AdapterLayout layout = run_.layout(checkpoint, state_.adapter);
  check_memory(layout);
  run_.make(std::move(layout), probe_);
  state_.adapter = run_.adapter_shape();
  load_reference(checkpoint);
  if (checkpoint != nullptr) {
    run_.restore(*checkpoint, state_.optimizer_steps);
    reporter_.note(fmt::format("resuming {} after update {} of {}", checkpoint->path.string(), state_.update,
                               document_.rollout().updates));
  }
  run_.open_logs(checkpoint != nullptr ? std::optional(state_.step) : std::nullopt);
  open_observer(checkpoint != nullptr);
}

void RolloutTrainer::open_observer(bool resumed) {
  if (!document_.observe || !document_.observe->enabled) return;
  ObservedRun run;
  run.algorithm = document_.run.algorithm == Algorithm::ppo ? "ppo" : "grpo";
  run.document = document_.path.string();
  run.model = document_.model.path.string();
  run.updates = document_.rollout().updates;
  if (resumed) run.resumed_from_update = state_.update;
  observer_ =
      Observer({document_.observe->directory, document_.observe->every, document_.observe->max_text_chars},
               run, [this](std::string_view text) { reporter_.warn(text); });
}

TrainResult RolloutTrainer::run() {
  try {
    while (state_.update < document_.rollout().updates || state_.evaluation_due) {
      if (!state_.evaluation_due) run_update();
      evaluate();
      const bool last = state_.update == document_.rollout().updates;
      if (!last && (stalled() || out_of_patience())) break;
      if (interrupted() && !last) fail(ErrorKind::interrupted, "interrupted");
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::protocol) {
      const std::string kept = run_.last_checkpoint();
      throw Error(error.kind(), fmt::format("update {}: {}{}{}", state_.update + 1, error.what(),
                                            kept.empty() ? "" : "\n", kept.empty() ? kept : kept.substr(2)));
    }
    if (error.kind() != ErrorKind::interrupted) throw;
    // The update at hand had not stepped: it is dropped, and drawn again by a run that goes on.
    TrainResult stopped = result(true);
    if (total_tokens_ == 0) {
      stopped.output.clear();
      return stopped;
    }
    if (document_.checkpoint) save(false);
    run_.write_adapter(document_.output.path, state_.step);
    return stopped;
  }
  rewards_->finish();
  run_.write_adapter(document_.output.path, state_.step);
  return result(false);
}

void RolloutTrainer::run_update() {
  seconds_ = {};
  figures_ = {};
  update_steps_ = 0;
  const auto start = Clock::now();
  const int64_t before = state_.step;
  Metrics metrics;
  update(metrics);
  release_engine();
  ++state_.update;
  state_.tokens += figures_.tokens;
  total_tokens_ += figures_.tokens;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  total_seconds_ += seconds;
  report(metrics, seconds);
  const bool last = state_.update == document_.rollout().updates;
  state_.evaluation_due =
      document_.evaluation && (last || state_.update % document_.evaluation->every_iterations == 0);
  const auto& checkpoint = document_.checkpoint;
  if (checkpoint && checkpoint->keeps_steps() &&
      state_.step / *checkpoint->every_steps > before / *checkpoint->every_steps) {
    save(false);
  }
}

void RolloutTrainer::report(const Metrics& metrics, double seconds) {
  Metrics all = metrics;
  for (size_t p = 0; p < seconds_.size(); ++p)
    all[fmt::format("timing/{}_seconds", name_of(static_cast<Phase>(p)))] = seconds_[p];
  all["generation/tokens_per_second"] =
      figures_.seconds > 0 ? static_cast<double>(figures_.tokens) / figures_.seconds : 0;
  const auto rows = static_cast<double>(figures_.computed + figures_.spared);
  all["generation/prefill_reuse_fraction"] = rows > 0 ? static_cast<double>(figures_.spared) / rows : 0;
  all["optimizer/learning_rate"] = last_lr_;
  all["optimizer/grad_norm"] = last_gradient_norm_;
  all["system/peak_rss_bytes"] = static_cast<double>(peak_resident_bytes());
  state_.metrics = all;
  std::vector<MetricValue> values = {{"update", static_cast<double>(state_.update)}};
  for (const auto& [name, value] : all) values.emplace_back(name, value);
  run_.metrics.write("update", state_.step, values);
  probe_->updated(all, seconds);
  observer_.update(state_.update - 1, update_steps_ == 0, values);
  reporter_.line(
      fmt::format("update {}: reward {:.4f}, kl {:.4f}, length {:.1f}, {:.0f} tok/s sampled, {:.1f} s, lr "
                  "{:.3g}, peak memory {} "
                  "MiB",
                  state_.update, all["reward/mean"], all["policy/kl"], all["completions/length_mean"],
                  all["generation/tokens_per_second"], seconds, last_lr_, peak_resident_bytes() >> 20));
}

bool RolloutTrainer::out_of_patience() const {
  if (!document_.evaluation || !document_.evaluation->patience ||
      state_.evaluations_without_gain < *document_.evaluation->patience) {
    return false;
  }
  reporter_.line(fmt::format("stopping: {} evaluations without a gain (evaluation.patience)",
                             state_.evaluations_without_gain));
  return true;
}

void RolloutTrainer::evaluate() {
  if (!state_.evaluation_due) return;
  std::vector<RolloutRequest> requests;
  for (size_t i = 0; i < prompts_.evaluation.size(); ++i) {
    requests.push_back({&prompts_.evaluation[i],
                        algo::evaluation_seed(document_.rollout().sampling.seed, static_cast<int64_t>(i))});
  }
  SamplingFigures figures;
  auto rollouts = sample_rollouts(*run_.device, context_, &run_.adapter, document_, requests,
                                  prompts_.longest(), "evaluating", reporter_, figures);
  score_rollouts(*rewards_, rollouts);
  double sum = 0;
  double least = INFINITY;
  double most = -INFINITY;
  for (const Rollout& rollout : rollouts) {
    sum += rollout.reward;
    least = std::min(least, rollout.reward);
    most = std::max(most, rollout.reward);
  }
  const double mean = sum / static_cast<double>(rollouts.size());
  const bool gain = !state_.best_reward || mean > *state_.best_reward + document_.evaluation->min_delta;
  state_.evaluation_due = false;
  state_.last_evaluation = mean;
  state_.evaluations_without_gain = gain ? 0 : state_.evaluations_without_gain + 1;
  if (gain) {
    state_.best_reward = mean;
    state_.best_step = state_.step;
  }
  const std::vector<MetricValue> values = {{"update", static_cast<double>(state_.update)},
                                           {"eval/mean_reward", mean},
                                           {"eval/reward_min", least},
                                           {"eval/reward_max", most}};
  run_.metrics.write("eval", state_.step, values);
  reporter_.line(fmt::format("evaluation after update {}: mean reward {:.4f} over {} prompts{}",
                             state_.update, mean, rollouts.size(), gain ? " (best so far)" : ""));
  if (gain && document_.checkpoint && document_.checkpoint->keeps_best()) save(true);
}

void RolloutTrainer::save(bool best) {
  CheckpointContent content = run_.checkpoint_content(state_.step, state_.to_json());
  if (reference_adapter_) content.buffers.push_back({"reference", reference_adapter_->weights});
  if (best) {
    run_.save_best(content);
  } else {
    run_.save_step(content);
  }
}

std::unique_ptr<RolloutTrainer> make_rollout_trainer(const Document& document, const ModelContext& context,
                                                     RolloutPrompts prompts,
                                                     const LoadedCheckpoint* checkpoint, Reporter& reporter,
                                                     Probe* probe) {
  std::unique_ptr<RolloutTrainer> trainer;
  if (document.run.algorithm == Algorithm::ppo) {
    trainer = std::make_unique<PpoTrainer>(document, context, std::move(prompts), checkpoint, reporter);
  } else {
    trainer = std::make_unique<GrpoTrainer>(document, context, std::move(prompts), checkpoint, reporter);
  }
  trainer->prepare(checkpoint, probe);
  return trainer;
}

TrainResult RolloutTrainer::result(bool stopped) {
  TrainResult result;
  result.interrupted = stopped;
  result.steps = state_.step;
  result.metrics = state_.metrics;
  if (state_.last_evaluation) result.metrics["eval/mean_reward"] = *state_.last_evaluation;
  result.tokens_per_second = total_seconds_ > 0 ? static_cast<double>(total_tokens_) / total_seconds_ : 0;
  result.peak_rss_bytes = peak_resident_bytes();
  result.output = document_.output.path;
  if (document_.checkpoint && document_.checkpoint->keeps_best() && state_.best_reward)
    result.best = best_adapter_path(document_.checkpoint->directory);
  return result;
}

}  // namespace retro::run
