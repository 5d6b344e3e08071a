// `bench` of a run that samples answers: the distribution of their rewards.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "model/adapter.h"
#include "run/interrupt.h"
#include "run/rollout_bench.h"
#include "run/rollouts.h"
#include "run/setup.h"

namespace retro::cli {

namespace {

using run::RewardSample;

run::RolloutPrompts load(const BenchArguments& arguments, const run::Document& document,
                         const run::PromptFiles& files, const run::ModelContext& context) {
  run::RolloutPrompts prompts = run::load_prompts(files, document, context);
  const auto size = static_cast<int64_t>(prompts.training.size());
  if (!arguments.limit || *arguments.limit >= size) return prompts;
  std::vector<run::Prompt> kept;  // spread evenly over the file
  for (int64_t i = 0; i < *arguments.limit; ++i)
    kept.push_back(std::move(prompts.training[static_cast<size_t>(i * size / *arguments.limit)]));
  prompts.training = std::move(kept);
  return prompts;
}

nlohmann::ordered_json to_json(const RewardSample& sample) {
  return {{"eval/mean_reward", sample.mean()},
          {"standard_error", sample.standard_error()},
          {"eval/reward_min", sample.quantile(0)},
          {"reward_quartiles", {sample.quantile(0.25), sample.quantile(0.5), sample.quantile(0.75)}},
          {"eval/reward_max", sample.quantile(1)},
          {"completions/length_mean", sample.length_mean},
          {"completions/truncation_fraction", sample.truncated_fraction}};
}

void print(const char* name, const RewardSample& sample) {
  fmt::print(
      "{:8} mean reward {:.4f} ± {:.4f}  least {:.4g}, quartiles {:.4g} {:.4g} {:.4g}, most {:.4g}  length "
      "{:.1f}, "
      "{:.0f} % cut\n",
      name, sample.mean(), sample.standard_error(), sample.quantile(0), sample.quantile(0.25),
      sample.quantile(0.5), sample.quantile(0.75), sample.quantile(1), sample.length_mean,
      100 * sample.truncated_fraction);
}

/// Of two samples of the same prompts, pair by pair.
RewardSample difference(const RewardSample& after, const RewardSample& before) {
  RewardSample result;
  for (size_t i = 0; i < after.rewards.size(); ++i)
    result.rewards.push_back(after.rewards[i] - before.rewards[i]);
  return result;
}

}  // namespace

int run_reward_bench(const BenchArguments& arguments, const run::Document& document, Progressed& progressed) {
  if (arguments.format == "text") {
    fail(ErrorKind::config,
         "--format text: a {} document is measured on prompts, which are JSON lines; leave it out",
         document.run.algorithm == run::Algorithm::ppo ? "ppo" : "grpo");
  }
  ProgressReporter reporter;
  for (const std::string& warning : document.warnings) reporter.warn(warning);
  const std::filesystem::path path = arguments.data        ? *arguments.data
                                     : document.evaluation ? document.evaluation->data
                                                           : document.rollout().prompts;
  const run::PromptFiles files{data::PromptFile(path, data::PromptUse::evaluation), std::nullopt};
  reward::RewardProgram program(run::reward_options(document));
  const run::ModelContext context = run::open_model(document);
  const run::RolloutPrompts prompts = load(arguments, document, files, context);
  std::optional<model::LoadedAdapter> adapter;
  if (arguments.adapter) {
    adapter = model::read_adapter(*arguments.adapter, context.model);
    const std::string fingerprint = run::fingerprint_model(context, reporter);
    for (const auto& line : model::describe_loading(*adapter, context.model, fingerprint))
      reporter.note(line);
  }
  progressed.started = true;
  const run::InterruptGuard guard;
  const auto device = device::make_cpu_device(document.training.threads);
  const RewardSample base =
      run::sample_rewards(document, context, *device, nullptr, prompts.training, program, "base", reporter);
  std::optional<RewardSample> adapted;
  if (adapter) {
    adapted = run::sample_rewards(document, context, *device, &adapter->adapter, prompts.training, program,
                                  "adapter", reporter);
  }
  program.finish();
  reporter.clear();

  nlohmann::ordered_json json = to_json(adapted ? *adapted : base);
  json["prompts"] = prompts.training.size();
  if (adapted) json["base"] = to_json(base);
  if (prints_results(arguments.json)) {
    fmt::print("{} {} of {}, one answer each\n", prompts.training.size(),
               prompts.training.size() == 1 ? "prompt" : "prompts", path.string());
    print("base", base);
    if (adapted) {
      print("adapter", *adapted);
      const RewardSample gain = difference(*adapted, base);
      fmt::print("the adapter changes the mean reward by {:+.4f} ± {:.4f}\n", gain.mean(),
                 gain.standard_error());
    }
  }
  write_json(arguments.json, json);
  return 0;
}

}  // namespace retro::cli
