// Records as tokens, each with the tokens that are trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_file.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace retro::data {

struct TrainingRecord {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;  // by token: a target of training (the first token never is one)
  size_t line = 0;               // in its file; for plain text the number of the window, from 1

  int64_t trained_tokens() const;
};

enum class Overlong { error, drop, truncate };

struct RecordOptions {
  int64_t ctx = 0;
  std::string ctx_name = "training.ctx";  // where the user gave ctx, as errors name it
  Overlong overlong = Overlong::error;
  std::string template_variables = "{}";  // a JSON object
};

/// What was read, and what was left out on the way.
struct Records {
  std::vector<TrainingRecord> records;
  size_t read = 0;
  size_t dropped = 0;               // longer than ctx, with Overlong::drop
  size_t truncated = 0;             // cut to ctx, with Overlong::truncate
  std::vector<size_t> empty_lines;  // records without a trained token
  std::vector<size_t>
      partial_lines;        // records kept, of which the template leaves out part of an assistant turn
  std::string fingerprint;  // of the file's bytes
};

/// A file whose lines were checked, before a model is loaded.
class DataFile {
 public:
  /// `format`: none is inferred from name and content. Throws Error(data) that lists the bad lines.
  DataFile(const std::filesystem::path& path, std::optional<FileFormat> format);
  ~DataFile();
  DataFile(DataFile&&) noexcept;

  FileFormat format() const;
  const std::filesystem::path& path() const;

  /// The tokens of a chat file's records: rendered by the template, trained on assistant spans as the
  /// template's origins give them, one begin token where the metadata asks for one. Of a text: one stream,
  /// cut into windows of ctx tokens. `chat` may be null for text. Throws Error(data) naming file and line;
  /// records without a trained token are left out and counted, and a file of none but such is refused.
  Records tokenize(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat,
                   const RecordOptions& options) const;

  /// The first `count` records as text with spans, for people: see preview.
  text::TrainingRendering rendering(size_t index, const text::ChatTemplate& chat,
                                    const RecordOptions& options) const;
  size_t lines() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// The tokens of one rendered conversation and which of them are trained: those with a byte in an assistant
/// span.
TrainingRecord tokenize_rendering(const text::TrainingRendering& rendering, const text::Tokenizer& tokenizer);

}  // namespace retro::data
