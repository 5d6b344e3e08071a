#include "base/memory_info.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace retro {

namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int64_t parse_number(const std::string& text, int64_t otherwise) {
  int64_t value = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : otherwise;
}

int64_t status_line(const char* key) {
  return std::max<int64_t>(0, parse_kib_line(slurp("/proc/self/status"), key));
}

// What the group and each of its ancestors have left; page cache of theirs can be given back.
int64_t group_left() {
  int64_t left = INT64_MAX;
  const std::string text = slurp("/proc/self/cgroup");
  const size_t at = text.find("0::");
  if (at == std::string::npos) return left;
  std::string path = text.substr(at + 3, text.find('\n', at) - at - 3);
  for (;;) {
    const std::string folder = "/sys/fs/cgroup" + path;
    const int64_t limit = parse_number(slurp(folder + "/memory.max"), INT64_MAX);
    if (limit != INT64_MAX) {
      const int64_t used = parse_number(slurp(folder + "/memory.current"), 0);
      const std::string stat = "\n" + slurp(folder + "/memory.stat");
      const size_t file_at = stat.find("\ninactive_file ");
      const int64_t cache = file_at == std::string::npos ? 0 : parse_number(stat.substr(file_at + 15), 0);
      left = std::min(left, std::max<int64_t>(0, limit - used + cache));
    }
    const size_t slash = path.find_last_of('/');
    if (path.size() <= 1 || slash == std::string::npos) return left;
    path.resize(slash);
  }
}

}  // namespace

int64_t parse_kib_line(std::string_view text, std::string_view key) {
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':') {
      const size_t digit = line.find_first_of("0123456789");
      if (digit == std::string_view::npos) return -1;
      return parse_number(std::string(line.substr(digit)), -1) * 1024;
    }
    at += line.size() + 1;
  }
  return -1;
}

int64_t resident_bytes() {
  return status_line("VmRSS");
}

int64_t peak_resident_bytes() {
  return status_line("VmHWM");
}

int64_t anonymous_bytes() {
  return status_line("RssAnon");
}

// Read at the first call, which main makes before anything else.
int64_t program_file_bytes() {
  static const int64_t bytes = status_line("RssFile");
  return bytes;
}

int64_t available_bytes() {
  const int64_t machine = parse_kib_line(slurp("/proc/meminfo"), "MemAvailable");
  return std::min(machine < 0 ? INT64_MAX : machine, group_left());
}

}  // namespace retro
