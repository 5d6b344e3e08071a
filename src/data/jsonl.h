// Chat files: one record a line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/chat_record.h"
#include "data/text_file.h"

namespace retro::data {

/// A line that holds a record: its number in the file, from 1, and its text without the line end.
struct RecordLine {
  size_t number = 0;
  std::string_view text;
};

/// The lines of a chat file that are not blank. Lines end at LF or CR LF alone; U+2028 is text.
std::vector<RecordLine> record_lines(std::string_view text);

/// Checks every line that is not blank by `check`, which throws Error(data) without file and line. Throws
/// Error(data) that lists all bad lines, the first 20 in full, as `file:line: what and how to mend it`; and
/// for a file without a record, with `example` as one.
std::vector<RecordLine> check_lines(std::string_view text, const std::string& file, std::string_view example,
                                    const std::function<void(const RecordLine&)>& check);

/// Checks every line as a record to train. Throws Error(data) that lists all bad lines, the first 20 in full,
/// as `file:line: what and how to mend it`; and for a file without a record.
std::vector<RecordLine> check_chat(std::string_view text, const std::string& file);

/// A chat file of which every record was checked. Records are parsed when asked for, so that memory does not
/// grow with the file.
class ChatFile {
 public:
  /// Throws Error(data), see check_chat.
  explicit ChatFile(const std::filesystem::path& path);

  size_t size() const { return lines_.size(); }
  size_t line(size_t index) const { return lines_[index].number; }
  /// Throws Error(data) naming the line when the file was changed since it was checked.
  ChatRecord record(size_t index) const;
  const std::filesystem::path& path() const { return file_.path(); }
  /// All bytes as they are on disk, for a fingerprint.
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  TextFile file_;
  std::vector<RecordLine> lines_;
};

}  // namespace retro::data
