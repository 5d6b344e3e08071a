#include "data/jsonl.h"

#include "base/error.h"

namespace retro::data {

std::vector<RecordLine> record_lines(std::string_view text) {
  std::vector<RecordLine> lines;
  text = without_mark(text);
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({number, line});
    begin = end + 1;
  }
  return lines;
}

std::vector<RecordLine> check_lines(std::string_view text, const std::string& file, std::string_view example,
                                    const std::function<void(const RecordLine&)>& check) {
  constexpr size_t kShown = 20;
  std::vector<RecordLine> lines = record_lines(text);
  if (lines.empty()) {
    fail(ErrorKind::data, "{}: has no records; write one a line, as {}", file, example);
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) check_utf8(text, file);
  if (lines.front().text.find_first_not_of(" \t") == lines.front().text.find('[')) {
    const std::string_view first = lines.front().text;
    if (first.find_last_not_of(" \t") != first.rfind(']') || first.find('{') != std::string_view::npos) {
      fail(ErrorKind::data,
           "{}:{}: begins a JSON list; a chat file has one object a line, {{\"messages\": [{{\"role\": "
           "\"user\", \"content\": \"…\"}}, …]}}. (A later build rewrites such files: `retrograd "
           "convert IN OUT`)",
           file, lines.front().number);
    }
  }
  std::string problems;
  size_t bad = 0;
  for (const RecordLine& line : lines) {
    try {
      check(line);
    } catch (const Error& error) {
      if (++bad > kShown) continue;
      problems += fmt::format("{}{}:{}: {}", bad > 1 ? "\n" : "", file, line.number, error.what());
    }
  }
  if (bad > kShown) problems += fmt::format("\n{}: and {} more bad lines", file, bad - kShown);
  if (bad > 0) throw Error(ErrorKind::data, problems);
  return lines;
}

std::vector<RecordLine> check_chat(std::string_view text, const std::string& file) {
  return check_lines(text, file,
                     "{\"messages\": [{\"role\": \"user\", \"content\": \"…\"}, {\"role\": "
                     "\"assistant\", \"content\": \"…\"}]}",
                     [](const RecordLine& line) { parse_chat_record(line.text, line.number); });
}

ChatFile::ChatFile(const std::filesystem::path& path)
    : file_(path, false), lines_(check_chat(file_.text(), path.string())) {}

ChatRecord ChatFile::record(size_t index) const {
  const RecordLine& line = lines_[index];
  try {
    return parse_chat_record(line.text, line.number);
  } catch (const Error& error) {
    throw error.within(fmt::format("{}:{} (changed while it was in use)", path().string(), line.number));
  }
}

}  // namespace retro::data
