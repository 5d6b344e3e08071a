#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "run/levers.h"
#include "run/setup.h"
#include "run/training_data.h"

namespace retro::cli {

namespace {

std::string text_of(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text;
  for (const auto& [key, value] : changes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, value);
  return text.empty() ? "as it is" : text;
}

void advise(const PlanArguments& arguments, const run::Document& document,
            const std::vector<run::LeverSetting>& settings, nlohmann::ordered_json& json) {
  const auto fit = run::first_fit(settings, *arguments.memory);
  json["memory"] = *arguments.memory;
  json["fits"] = fit.has_value();
  const bool print = prints_results(arguments.json);
  if (print) {
    fmt::print("\nsettings, in the order in which to try them:\n  {:>11} {:>11} {:>10}\n", "memory", "saved",
               "time");
  }
  bool marked = false;
  for (const run::LeverSetting& setting : settings) {
    const bool first = !marked && setting.bytes <= *arguments.memory;
    marked = marked || first;
    nlohmann::ordered_json entry = {{"bytes", setting.bytes}, {"relative_time", setting.relative_time}};
    for (const auto& [key, value] : setting.changes(document)) entry["changes"][key] = value;
    json["settings"].push_back(std::move(entry));
    if (print) {
      const int64_t saved = settings.front().bytes - setting.bytes;
      fmt::print("  {:>11} {:>11} {:>+8.0f} %  {}{}\n", format_bytes(setting.bytes),
                 saved < 0 ? "-" + format_bytes(-saved) : format_bytes(saved),
                 100 * (setting.relative_time - 1), text_of(setting.changes(document)),
                 first ? "   <- the first that fits" : "");
    }
  }
  if (!fit) {
    write_json(arguments.json, json);
    const auto smallest = std::ranges::min(settings, {}, &run::LeverSetting::bytes);
    fail(ErrorKind::config, "no setting of the memory levers fits {}; the smallest takes {}",
         format_bytes(*arguments.memory), format_bytes(smallest.bytes));
  }
  const auto changes = fit->changes(document);
  for (const auto& [key, value] : changes) json["changes"][key] = value;
  if (!arguments.write || changes.empty()) return;
  const std::filesystem::path file = behind_links(arguments.config);
  write_file(file, run::with_training_keys(read_file(file), arguments.config.string(), changes));
  if (print) fmt::print("wrote {} into {}\n", text_of(changes), arguments.config.string());
}

}  // namespace

int run_plan(const PlanArguments& arguments) {
  const run::Document document =
      run::load_document(arguments.config, {arguments.common.model, arguments.common.device});
  run::require_sft(document);
  refuse_to_replace(arguments.json, used_files(document));
  ProgressReporter reporter;
  for (const std::string& warning : document.warnings) reporter.warn(warning);
  const run::DataFiles files = run::open_data(document);
  const run::ModelContext context = run::open_model(document);
  run::warn_of_long_context(document, context, reporter);
  const run::RunRecords records = run::load_records(files, document, context, reporter);
  const run::Workload workload = run::make_workload(
      document, records.training, records.evaluation ? &*records.evaluation : nullptr, reporter);
  const int64_t program_bytes = run::program_bytes();
  const model::AdapterLayout layout = run::adapter_layout(document, context);
  const auto plan = engine::plan_engine(context.model, &layout, run::engine_options(document, workload));
  const run::MemoryPlan memory =
      run::plan_memory(context, plan, &layout, run::optimizer_options(document).kind,
                       document.training.threads, program_bytes);
  reporter.clear();

  nlohmann::ordered_json json;
  for (const auto& part : memory.parts) json["parts"][part.name] = part.bytes;
  json["total_bytes"] = memory.total();
  json["micro_batch"] = document.training.micro_batch;
  json["gradient_accumulation"] = document.training.gradient_accumulation;
  json["longest_record_rows"] = workload.longest_record;
  json["widest_pass_rows"] = workload.widest_pass(document.training.micro_batch);
  if (prints_results(arguments.json)) {
    for (const auto& part : memory.parts) fmt::print("{:>11}  {}\n", format_bytes(part.bytes), part.name);
    fmt::print("{:>11}  in all, at the peak\n", format_bytes(memory.total()));
  }
  if (arguments.memory)
    advise(arguments, document, run::lever_settings(document, context, workload, program_bytes), json);
  write_json(arguments.json, json);
  return 0;
}

}  // namespace retro::cli
