#include "run/training_data.h"

#include <fmt/format.h>

#include "base/error.h"
#include "run/interrupt.h"

namespace retro::run {

namespace {

std::string list_lines(const std::vector<size_t>& lines) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < lines.size() && i < kShown; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(lines[i]);
  return lines.size() > kShown ? text + ", …" : text;
}

}  // namespace

std::optional<data::FileFormat> file_format(const std::optional<DataFormat>& format) {
  if (!format) return std::nullopt;
  return *format == DataFormat::text ? data::FileFormat::text : data::FileFormat::chat;
}

DataFiles open_data(const Document& document) {
  const auto open = [&](const char* key, const std::filesystem::path& path, const auto& format) {
    try {
      return data::DataFile(path, format);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io || !document.given(key)) throw;
      throw error.within(place(document, key));
    }
  };
  DataFiles files{open("sft.data", document.sft.data, file_format(document.sft.data_format)), std::nullopt};
  if (document.evaluation)
    files.evaluation.emplace(open("evaluation.data", document.evaluation->data, std::nullopt));
  return files;
}

data::RecordOptions record_options(const Document& document) {
  data::RecordOptions options;
  options.ctx = document.training.ctx;
  options.template_variables = document.sft.template_variables;
  switch (document.sft.overlong) {
    case Overlong::error:
      options.overlong = data::Overlong::error;
      break;
    case Overlong::drop:
      options.overlong = data::Overlong::drop;
      break;
    case Overlong::truncate:
      options.overlong = data::Overlong::truncate;
      break;
  }
  return options;
}

data::Records tokenize(const data::DataFile& file, const ModelContext& context,
                       const data::RecordOptions& options, Reporter& reporter) {
  const bool chat = file.format() == data::FileFormat::chat;
  data::Records records;
  try {
    records = file.tokenize(context.tokenizer, chat ? &context.chat_template() : nullptr, options);
  } catch (const Error& error) {
    // The template is at fault, which the model's file brings.
    if (error.kind() != ErrorKind::model) throw;
    throw error.within(context.model.file().path().string() + ": tokenizer.chat_template");
  }
  const std::string name = file.path().string();
  if (const std::string note = context.template_note(); chat && !note.empty()) reporter.note(note);
  if (records.dropped > 0) {
    reporter.warn(fmt::format("{}: {} of {} records dropped, longer than {} = {}", name, records.dropped,
                              records.read, options.ctx_name, options.ctx));
  }
  if (records.truncated > 0) {
    reporter.warn(fmt::format("{}: {} of {} records cut to {} = {}", name, records.truncated, records.read,
                              options.ctx_name, options.ctx));
  }
  if (!records.empty_lines.empty()) {
    reporter.warn(fmt::format("{}: {} of {} records left out, no trained token is left in them ({} {})", name,
                              records.empty_lines.size(), records.read, chat ? "line" : "window",
                              list_lines(records.empty_lines)));
  }
  if (!records.partial_lines.empty()) {
    reporter.warn(fmt::format(
        "{}: {} of {} records have an assistant turn of which the model's template leaves out a part, as the "
        "reasoning of earlier turns; what the template writes is trained, the rest is not (line {})",
        name, records.partial_lines.size(), records.read, list_lines(records.partial_lines)));
  }
  return records;
}

RunRecords load_records(const DataFiles& files, const Document& document, const ModelContext& context,
                        Reporter& reporter) {
  const data::RecordOptions options = record_options(document);
  RunRecords records{tokenize(files.train, context, options, reporter), std::nullopt};
  if (interrupted()) fail(ErrorKind::interrupted, "interrupted");
  if (files.evaluation) {
    records.evaluation = tokenize(*files.evaluation, context, options, reporter);
    if (document.evaluation->max_examples) thin_out(*records.evaluation, *document.evaluation->max_examples);
  }
  return records;
}

void thin_out(data::Records& records, int64_t count) {
  const auto size = static_cast<int64_t>(records.records.size());
  if (size <= count) return;
  std::vector<data::TrainingRecord> kept;
  for (int64_t i = 0; i < count; ++i) {
    kept.push_back(std::move(records.records[static_cast<size_t>(i * size / count)]));
  }
  records.records = std::move(kept);
}

}  // namespace retro::run
