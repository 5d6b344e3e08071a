// Files of text from outside: their bytes, checked, and what format they are in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"

namespace retro::data {

enum class FileFormat { text, chat };

/// A mapped file that holds UTF-8. A byte-order mark is not part of the text.
class TextFile {
 public:
  /// Throws Error(data) naming the file (and the line, where there is one) when it cannot be read, or when
  /// `check` and it is not UTF-8.
  explicit TextFile(const std::filesystem::path& path, bool check = true);

  std::string_view text() const { return text_; }
  const std::filesystem::path& path() const { return file_.path(); }
  /// All bytes as they are on disk, for a fingerprint.
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  MappedFile file_;
  std::string_view text_;
};

/// Text without a byte-order mark at its start.
std::string_view without_mark(std::string_view text);

/// `.jsonl` and `.json` hold chats, `.txt` and `.md` text; another name is decided by whether the first line
/// that is not blank starts with `{`.
FileFormat infer_format(const std::filesystem::path& path, std::string_view text);

/// Throws Error(data) naming file, line and column (bytes) of the first byte that is not UTF-8.
void check_utf8(std::string_view text, const std::string& file);

}  // namespace retro::data
