#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/progress.h"
#include "run/setup.h"
#include "run/training_data.h"

namespace retro::cli {

namespace {

// Trained tokens are green on a terminal and stand between brackets elsewhere.
struct Marks {
  const char* begin;
  const char* end;
};

Marks marks() {
  const bool color = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return color ? Marks{"\033[32m", "\033[0m"} : Marks{"⟦", "⟧"};
}

void show(const data::TrainingRecord& record, const text::Vocabulary& vocabulary, bool ids) {
  const Marks mark = marks();
  fmt::print("--- line {}: {} tokens, {} trained\n", record.line, record.ids.size(), record.trained_tokens());
  bool trained = false;
  for (size_t t = 0; t < record.ids.size(); ++t) {
    if (trained != (record.trained[t] != 0)) fmt::print("{}", trained ? mark.end : mark.begin);
    trained = record.trained[t] != 0;
    const text::TokenId id = record.ids[t];
    fmt::print("{}", vocabulary.is_control(id) ? vocabulary.text(id) : vocabulary.bytes(id));
    if (ids) fmt::print("({})", id);
  }
  fmt::print("{}\n", trained ? mark.end : "");
}

}  // namespace

int run_preview(const PreviewArguments& arguments) {
  run::Document document =
      run::load_document(arguments.config, {arguments.common.model, arguments.common.device});
  if (arguments.data) document.sft.data = *arguments.data;
  ProgressReporter reporter;
  for (const std::string& warning : document.warnings) reporter.warn(warning);
  document.evaluation.reset();
  const run::DataFiles files = run::open_data(document);
  const run::ModelContext context = run::open_model(document);
  // Records that are too long are shown too, and counted.
  data::RecordOptions options = run::record_options(document);
  const int64_t ctx = options.ctx;
  const bool text = files.train.format() == data::FileFormat::text;
  if (!text) options.ctx = int64_t{1} << 40;
  const data::Records records = run::tokenize(files.train, context, options, reporter);
  reporter.clear();

  const auto count = std::min(records.records.size(), static_cast<size_t>(arguments.records));
  for (size_t i = 0; i < count; ++i) show(records.records[i], context.tokenizer.vocabulary(), arguments.ids);
  std::vector<size_t> lengths;
  int64_t trained = 0;
  size_t overlong = 0;
  for (const auto& record : records.records) {
    lengths.push_back(record.ids.size());
    const bool fits = static_cast<int64_t>(record.ids.size()) <= ctx;
    overlong += fits ? 0 : 1;
    if (fits) trained += record.trained_tokens();
  }
  std::sort(lengths.begin(), lengths.end());
  fmt::print("\n{} {}: {} to {} tokens, median {}\n", records.records.size(), text ? "windows" : "records",
             lengths.front(), lengths.back(), lengths[lengths.size() / 2]);
  fmt::print("{} longer than training.ctx = {}{}\n", overlong, ctx,
             overlong > 0 ? " (sft.overlong says what becomes of them)" : "");
  fmt::print("an epoch trains {} tokens of the records that fit\n", trained);
  return 0;
}

}  // namespace retro::cli
