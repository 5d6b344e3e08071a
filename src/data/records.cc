#include "data/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <variant>

#include "base/error.h"
#include "base/hash.h"
#include "data/jsonl.h"

namespace retro::data {

int64_t TrainingRecord::trained_tokens() const {
  return std::accumulate(trained.begin(), trained.end(), int64_t{0},
                         [](int64_t sum, uint8_t t) { return sum + (t != 0 ? 1 : 0); });
}

struct DataFile::Impl {
  std::variant<ChatFile, TextFile> file;

  const ChatFile* chat() const { return std::get_if<ChatFile>(&file); }
  std::span<const std::byte> bytes() const {
    return std::visit([](const auto& f) { return f.bytes(); }, file);
  }
};

namespace {

std::variant<ChatFile, TextFile> open_data(const std::filesystem::path& path,
                                           std::optional<FileFormat> format) {
  if (!format) {
    const TextFile probe(path, false);
    format = infer_format(path, probe.text());
  }
  if (*format == FileFormat::chat) return ChatFile(path);
  TextFile file(path);
  if (file.text().find_first_not_of(" \t\r\n") == std::string_view::npos) {
    fail(ErrorKind::data, "{}: is empty; it needs text to train on", path.string());
  }
  return file;
}

// Cuts at ctx, drops or refuses what is longer; returns whether the record stays.
bool keep_within(TrainingRecord& record, const RecordOptions& options, Records& records,
                 std::string& problems, const std::string& file) {
  const auto length = static_cast<int64_t>(record.ids.size());
  if (length <= options.ctx) return true;
  switch (options.overlong) {
    case Overlong::drop:
      ++records.dropped;
      return false;
    case Overlong::truncate:
      record.ids.resize(static_cast<size_t>(options.ctx));
      record.trained.resize(static_cast<size_t>(options.ctx));
      ++records.truncated;
      return true;
    case Overlong::error:
      break;
  }
  problems += fmt::format(
      "{0}:{1}: is {2} tokens long, {3} is {4}; set {3} to {2} or more, or sft.overlong = \"drop\" or "
      "\"truncate\"\n",
      file, record.line, length, options.ctx_name, options.ctx);
  return false;
}

Records finish(Records records, const RecordOptions& options, const std::string& file) {
  if (!records.records.empty()) return records;
  fail(ErrorKind::data,
       "{}: no record has a token to train ({} read, {} too long, {} without a trained token); raise {}, or "
       "see "
       "`retrograd preview`",
       file, records.read, records.dropped, records.empty_lines.size(), options.ctx_name);
}

std::vector<text::TokenId> encode(const TextFile& file, const text::Tokenizer& tokenizer) {
  try {
    return tokenizer.encode_document(file.text());
  } catch (const Error& error) {
    throw error.within(file.path().string());
  }
}

Records tokenize_text(const TextFile& file, const text::Tokenizer& tokenizer, const RecordOptions& options) {
  Records records;
  const std::vector<text::TokenId> stream = encode(file, tokenizer);
  const auto ctx = static_cast<size_t>(options.ctx);
  for (size_t begin = 0; begin < stream.size(); begin += ctx) {
    TrainingRecord record;
    record.ids.assign(stream.begin() + static_cast<std::ptrdiff_t>(begin),
                      stream.begin() + static_cast<std::ptrdiff_t>(std::min(stream.size(), begin + ctx)));
    record.trained.assign(record.ids.size(), 1);
    record.trained[0] = 0;
    record.line = ++records.read;
    if (record.ids.size() < 2) {
      records.empty_lines.push_back(record.line);
      continue;
    }
    records.records.push_back(std::move(record));
  }
  return finish(std::move(records), options, file.path().string());
}

text::TrainingRendering render(const ChatRecord& record, const text::ChatTemplate& chat,
                               const RecordOptions& options) {
  const auto variables = nlohmann::ordered_json::parse(options.template_variables);
  text::Conversation conversation;
  conversation.messages = record.messages.get();
  conversation.tools = record.tools.get();
  conversation.variables = &variables;
  return chat.render_training(conversation);
}

constexpr size_t kShown = 20;

Records tokenize_chat(const ChatFile& file, const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                      const RecordOptions& options) {
  Records records;
  std::string problems;
  size_t bad = 0;
  const std::string name = file.path().string();
  for (size_t i = 0; i < file.size(); ++i) {
    ++records.read;
    std::string problem;
    try {
      const text::TrainingRendering rendering = render(file.record(i), chat, options);
      TrainingRecord record = tokenize_rendering(rendering, tokenizer);
      record.line = file.line(i);
      const bool whole = std::all_of(rendering.turns.begin(), rendering.turns.end(),
                                     [](const text::TrainedTurn& turn) { return turn.whole; });
      if (keep_within(record, options, records, problem, name)) {
        if (record.trained_tokens() > 0) {
          if (!whole) records.partial_lines.push_back(record.line);
          records.records.push_back(std::move(record));
        } else {
          records.empty_lines.push_back(record.line);
        }
      }
    } catch (const Error& error) {
      // A template that fails is the model's fault and would fail again on every line.
      if (error.kind() != ErrorKind::data) throw error.within(fmt::format("{}:{}", name, file.line(i)));
      problem = fmt::format("{}:{}: {}\n", name, file.line(i), error.what());
    }
    if (!problem.empty() && ++bad <= kShown) problems += problem;
  }
  if (bad > kShown) problems += fmt::format("{}: and {} more such lines\n", name, bad - kShown);
  if (bad > 0) {
    problems.pop_back();
    throw Error(ErrorKind::data, problems);
  }
  return finish(std::move(records), options, name);
}

}  // namespace

DataFile::DataFile(const std::filesystem::path& path, std::optional<FileFormat> format)
    : impl_(std::make_unique<const Impl>(Impl{open_data(path, format)})) {}

DataFile::~DataFile() = default;
DataFile::DataFile(DataFile&&) noexcept = default;

FileFormat DataFile::format() const {
  return impl_->chat() != nullptr ? FileFormat::chat : FileFormat::text;
}

const std::filesystem::path& DataFile::path() const {
  return std::visit([](const auto& file) -> const std::filesystem::path& { return file.path(); },
                    impl_->file);
}

size_t DataFile::lines() const {
  return impl_->chat() != nullptr ? impl_->chat()->size() : 0;
}

Records DataFile::tokenize(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat,
                           const RecordOptions& options) const {
  Records records = impl_->chat() != nullptr
                        ? tokenize_chat(*impl_->chat(), tokenizer, *chat, options)
                        : tokenize_text(std::get<TextFile>(impl_->file), tokenizer, options);
  Hasher hasher;
  hasher.update(impl_->bytes());
  records.fingerprint = hasher.hex();
  return records;
}

text::TrainingRendering DataFile::rendering(size_t index, const text::ChatTemplate& chat,
                                            const RecordOptions& options) const {
  const ChatFile& file = *impl_->chat();
  try {
    return render(file.record(index), chat, options);
  } catch (const Error& error) {
    throw error.within(fmt::format("{}:{}", file.path().string(), file.line(index)));
  }
}

TrainingRecord tokenize_rendering(const text::TrainingRendering& rendering,
                                  const text::Tokenizer& tokenizer) {
  std::vector<text::TextRun> runs;
  for (const text::Run& run : rendering.rendered.runs) {
    runs.push_back({run.begin, run.end, run.origin.control_tokens_count()});
  }
  std::vector<size_t> cuts;
  for (const text::TrainedTurn& turn : rendering.turns) {
    if (turn.begin < turn.end && (cuts.empty() || turn.cut > cuts.back())) cuts.push_back(turn.cut);
  }
  std::vector<text::TokenSpan> tokens = tokenizer.encode_runs(rendering.rendered.text, runs, cuts);
  tokenizer.with_bos(tokens);

  TrainingRecord record;
  record.ids = text::ids_of(tokens);
  record.trained.assign(tokens.size(), 0);
  // Turns and tokens both ascend.
  size_t t = 1;
  for (const text::TrainedTurn& turn : rendering.turns) {
    if (turn.begin == turn.end) continue;
    while (t < tokens.size() && tokens[t].end <= turn.begin) ++t;
    for (size_t in_turn = t; in_turn < tokens.size() && tokens[in_turn].begin < turn.end; ++in_turn) {
      record.trained[in_turn] = 1;
    }
  }
  return record;
}

}  // namespace retro::data
