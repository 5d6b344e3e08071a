#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "algo/sft.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "model/adapter.h"
#include "run/evaluate.h"
#include "run/interrupt.h"
#include "run/setup.h"
#include "run/training_data.h"

namespace retro::cli {

namespace {

data::DataFile open_examples(const BenchArguments& arguments, const run::Document& document) {
  std::optional<data::FileFormat> format;
  if (arguments.format != "auto")
    format = arguments.format == "text" ? data::FileFormat::text : data::FileFormat::chat;
  if (arguments.data) return {*arguments.data, format};
  if (document.evaluation) return {document.evaluation->data, format};
  // sft.data_format is that of the training data alone.
  return {document.sft.data, format ? format : run::file_format(document.sft.data_format)};
}

nlohmann::ordered_json to_json(const run::Loss& loss) {
  return {{"loss", loss.mean()}, {"perplexity", loss.perplexity()}, {"tokens", loss.tokens}};
}

run::Loss measure(const run::Document& document, const run::ModelContext& context,
                  const model::Adapter* adapter, const data::Records& records, const char* phase,
                  run::Reporter& reporter) {
  engine::EngineOptions options =
      run::engine_options(document, run::single_record(algo::longest_rows(records.records)));
  options.micro_batch = static_cast<int32_t>(document.training.micro_batch);
  options.train = false;
  const auto device = device::make_cpu_device(document.training.threads);
  engine::Engine engine(
      *device, adapter,
      engine::plan_engine(context.model, adapter == nullptr ? nullptr : &adapter->layout, options));
  return run::evaluate(engine, records.records, phase, reporter);
}

void print(const char* name, const run::Loss& loss) {
  fmt::print("{:8} loss {:.4f}  perplexity {:.3f}  over {} trained tokens\n", name, loss.mean(),
             loss.perplexity(), loss.tokens);
}

}  // namespace

int run_bench(const BenchArguments& arguments, Progressed& progressed) {
  run::Document document =
      run::load_document(arguments.config, {arguments.common.model, arguments.common.device});
  std::vector<UsedFile> files = used_files(document);
  if (arguments.data) files.push_back({"--data", *arguments.data});
  if (arguments.adapter) files.push_back({"--adapter", *arguments.adapter});
  refuse_to_replace(arguments.json, files);
  if (arguments.ctx) document.training.ctx = *arguments.ctx;
  if (document.rolls_out()) return run_reward_bench(arguments, document, progressed);
  ProgressReporter reporter;
  for (const std::string& warning : document.warnings) reporter.warn(warning);
  const data::DataFile file = open_examples(arguments, document);
  const run::ModelContext context = run::open_model(document);
  data::RecordOptions options = run::record_options(document);
  if (arguments.ctx) {
    const int64_t longest = context.model.hyperparameters().context_length;
    if (*arguments.ctx > longest) {
      reporter.warn(
          fmt::format("--ctx {}: the model was made for at most {} tokens", *arguments.ctx, longest));
    }
    options.ctx_name = "--ctx";
  } else {
    run::warn_of_long_context(document, context, reporter);
  }
  data::Records records = run::tokenize(file, context, options, reporter);
  if (arguments.limit) run::thin_out(records, *arguments.limit);
  std::optional<model::LoadedAdapter> adapter;
  if (arguments.adapter) {
    adapter = model::read_adapter(*arguments.adapter, context.model);
    const std::string fingerprint = run::fingerprint_model(context, reporter);
    for (const auto& line : model::describe_loading(*adapter, context.model, fingerprint))
      reporter.note(line);
  }
  progressed.started = true;
  const run::InterruptGuard guard;
  const run::Loss base = measure(document, context, nullptr, records, "base", reporter);
  std::optional<run::Loss> adapted;
  if (adapter) adapted = measure(document, context, &adapter->adapter, records, "adapter", reporter);
  reporter.clear();

  nlohmann::ordered_json json = to_json(adapted ? *adapted : base);
  json["examples"] = records.records.size();
  if (adapted) json["base"] = to_json(base);
  if (prints_results(arguments.json)) {
    fmt::print("{} {} of {}\n", records.records.size(), records.records.size() == 1 ? "example" : "examples",
               file.path().string());
    print("base", base);
    if (adapted) print("adapter", *adapted);
  }
  write_json(arguments.json, json);
  return 0;
}

}  // namespace retro::cli
