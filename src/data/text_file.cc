#include "data/text_file.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "text/utf8.h"

namespace retro::data {

namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";

MappedFile open(const std::filesystem::path& path) {
  try {
    return MappedFile(path);
  } catch (const Error& error) {
    // A data file that is not there is a mistake in what was asked for, told before anything starts.
    throw Error(ErrorKind::data, error.what());
  }
}

}  // namespace

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

void check_utf8(std::string_view text, const std::string& file) {
  if (text::utf8_valid(text)) return;
  size_t line = 1, line_start = 0;
  for (size_t at = 0; at < text.size();) {
    const text::Utf8Step step = text::utf8_step(text, at);
    if (step.kind != text::Utf8Step::Kind::character) {
      const bool wide = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
      fail(ErrorKind::data, "{}:{}: not UTF-8 at column {}{}; save the file as UTF-8", file, line,
           at - line_start + 1, wide ? " (it looks like UTF-16)" : "");
    }
    at += step.length;
    if (text[at - 1] == '\n') {
      ++line;
      line_start = at;
    }
  }
}

TextFile::TextFile(const std::filesystem::path& path, bool check) : file_(open(path)) {
  const auto bytes = file_.bytes();
  text_ = without_mark({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (check) check_utf8(text_, path.string());
}

FileFormat infer_format(const std::filesystem::path& path, std::string_view text) {
  std::string extension = path.extension().string();
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (extension == ".jsonl" || extension == ".json") return FileFormat::chat;
  if (extension == ".txt" || extension == ".md") return FileFormat::text;
  text = without_mark(text);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? FileFormat::chat : FileFormat::text;
}

}  // namespace retro::data
