#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/terminal_text.h"
#include "data/prompts.h"
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
  fmt::print("--- line {}: {} tokens", record.line, record.ids.size());
  if (record.trained_tokens() > 0) fmt::print(", {} trained", record.trained_tokens());
  fmt::print("\n");
  bool trained = false;
  std::string part;  // between two marks: a character may come in several tokens
  for (size_t t = 0; t < record.ids.size(); ++t) {
    if (trained != (record.trained[t] != 0)) {
      fmt::print("{}{}", without_controls(part), trained ? mark.end : mark.begin);
      part.clear();
    }
    trained = record.trained[t] != 0;
    const text::TokenId id = record.ids[t];
    part += vocabulary.is_control(id) ? vocabulary.text(id) : vocabulary.bytes(id);
    if (ids) part += fmt::format("({})", id);
  }
  fmt::print("{}{}\n", without_controls(part), trained ? mark.end : "");
}

// Of the record as the run takes it.
int64_t trained_tokens(const data::TrainingRecord& record, int64_t ctx, run::Overlong overlong) {
  const auto length = static_cast<int64_t>(record.ids.size());
  if (length <= ctx) return record.trained_tokens();
  if (overlong != run::Overlong::truncate) return 0;
  return std::count_if(record.trained.begin(), record.trained.begin() + ctx,
                       [](uint8_t token) { return token != 0; });
}

// Prompts as they are continued from; those that do not fit are shown too, and counted.
int preview_prompts(const run::Document& document, const PreviewArguments& arguments) {
  const run::RolloutSection& rollout = document.rollout();
  const data::PromptFile file(arguments.data.value_or(rollout.prompts), data::PromptUse::rollout);
  const run::ModelContext context = run::open_model(document);
  data::PromptOptions options;
  options.ctx = int64_t{1} << 40;
  const auto prompts = data::tokenize_prompts(file, context.chat_template(), context.tokenizer, options);
  const auto count = std::min(prompts.size(), static_cast<size_t>(arguments.records));
  for (size_t i = 0; i < count; ++i) {
    show({prompts[i], std::vector<uint8_t>(prompts[i].size(), 0), file.line(i)},
         context.tokenizer.vocabulary(), arguments.ids);
  }
  std::vector<size_t> lengths;
  for (const auto& prompt : prompts) lengths.push_back(prompt.size());
  std::sort(lengths.begin(), lengths.end());
  const int64_t room = document.training.ctx - rollout.sampling.max_new_tokens;
  const auto overlong = std::count_if(lengths.begin(), lengths.end(),
                                      [&](size_t length) { return static_cast<int64_t>(length) > room; });
  fmt::print("\n{} prompts: {} to {} tokens, median {}\n", lengths.size(), lengths.front(), lengths.back(),
             lengths[lengths.size() / 2]);
  fmt::print("{} longer than {}, what training.ctx = {} leaves beside max_new_tokens = {}{}\n", overlong,
             room, document.training.ctx, rollout.sampling.max_new_tokens,
             overlong > 0 ? "; the run would refuse the file" : "");
  fmt::print("an update samples {} answers; the run takes {} steps\n", document.answers_per_update(),
             document.nominal_steps());
  return 0;
}

}  // namespace

int run_preview(const PreviewArguments& arguments) {
  run::Document document =
      run::load_document(arguments.config, {arguments.common.model, arguments.common.device});
  ProgressReporter reporter;
  for (const std::string& warning : document.warnings) reporter.warn(warning);
  if (document.rolls_out()) return preview_prompts(document, arguments);
  if (arguments.data) document.sft.data = *arguments.data;
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
    overlong += static_cast<int64_t>(record.ids.size()) > ctx ? 1 : 0;
    trained += trained_tokens(record, ctx, document.sft.overlong);
  }
  std::sort(lengths.begin(), lengths.end());
  fmt::print("\n{} {}: {} to {} tokens, median {}\n", records.records.size(), text ? "windows" : "records",
             lengths.front(), lengths.back(), lengths[lengths.size() / 2]);
  fmt::print("{} longer than training.ctx = {}{}\n", overlong, ctx,
             overlong > 0 ? " (sft.overlong says what becomes of them)" : "");
  const bool cut = document.sft.overlong == run::Overlong::truncate && overlong > 0;
  fmt::print("an epoch trains {} tokens of {}\n", trained,
             cut ? "the records, cut to training.ctx" : "the records that fit");
  return 0;
}

}  // namespace retro::cli
