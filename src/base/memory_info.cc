#include "base/memory_info.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/cgroup.h"

namespace retro {

namespace {

int64_t parse_number(const std::string& text, int64_t otherwise) {
  int64_t value = otherwise;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : otherwise;
}

int64_t status_line(const char* key) {
  return std::max<int64_t>(0, parse_kib_line(read_system_file("/proc/self/status"), key));
}

// What the group and each of its ancestors have left; page cache of theirs can be given back.
int64_t group_left() {
  int64_t left = INT64_MAX;
  for (const std::string& folder : cgroup_folders()) {
    const int64_t limit = parse_number(read_system_file(folder + "/memory.max"), INT64_MAX);
    if (limit == INT64_MAX) continue;
    const int64_t used = parse_number(read_system_file(folder + "/memory.current"), 0);
    const std::string stat = "\n" + read_system_file(folder + "/memory.stat");
    const size_t file_at = stat.find("\ninactive_file ");
    const int64_t cache = file_at == std::string::npos ? 0 : parse_number(stat.substr(file_at + 15), 0);
    left = std::min(left, std::max<int64_t>(0, limit - used + cache));
  }
  return left;
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
  const int64_t machine = parse_kib_line(read_system_file("/proc/meminfo"), "MemAvailable");
  return std::min(machine < 0 ? INT64_MAX : machine, group_left());
}

}  // namespace retro
