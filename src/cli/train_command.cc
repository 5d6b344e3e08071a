#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "run/interrupt.h"
#include "run/train.h"

namespace retro::cli {

int run_train(const TrainArguments& arguments, Progressed& progressed) {
  const run::Document document =
      run::load_document(arguments.config, {arguments.common.model, arguments.common.device});
  refuse_to_replace(arguments.json, used_files(document));
  if (document.run.verbose) set_log_level(LogLevel::debug);
  const run::InterruptGuard guard("\nstopping after this step; once more stops at once\n");
  ProgressReporter reporter;
  run::TrainOptions options;
  options.resume = arguments.resume;
  options.state = arguments.state;
  options.on_start = [&] { progressed.started = true; };
  const run::TrainResult result = run::train(document, options, reporter);
  reporter.clear();

  nlohmann::ordered_json json(result.metrics);
  json["steps"] = result.steps;
  json["tokens_per_second"] = result.tokens_per_second;
  json["peak_rss_bytes"] = result.peak_rss_bytes;
  json["output"] = result.output.string();
  json["interrupted"] = result.interrupted;
  if (result.best) json["best"] = result.best->string();
  if (prints_results(arguments.json)) {
    std::string figures;
    for (const auto& [name, value] : result.metrics) figures += fmt::format(", {} {:.4f}", name, value);
    const std::string wrote = result.output.empty() ? "nothing" : result.output.string();
    const std::string best = result.best ? ", best evaluation in " + result.best->string() : std::string();
    if (result.tokens_per_second > 0) figures += fmt::format(", {:.0f} tok/s", result.tokens_per_second);
    fmt::print("{}: {} {}{}, peak memory {}; wrote {}{}{}\n", result.interrupted ? "interrupted" : "done",
               result.steps, result.steps == 1 ? "step" : "steps", figures,
               format_bytes(result.peak_rss_bytes), wrote, best,
               result.interrupted && document.checkpoint && !result.output.empty()
                   ? "; train with --resume goes on"
                   : "");
  }
  write_json(arguments.json, json);
  return result.interrupted ? 130 : 0;
}

}  // namespace retro::cli
