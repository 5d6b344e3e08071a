#include "gguf/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace retro::gguf {
namespace {

constexpr uint64_t kMaxParts = 65535;  // `split.count` is a u16

std::optional<uint64_t> integer(const Part& part, std::string_view key, const std::string& file) {
  const auto entry = std::ranges::find(part.entries, key, &Entry::key);
  if (entry == part.entries.end()) return std::nullopt;
  const auto number = entry->value.as_u64();
  if (!number) {
    fail(ErrorKind::model, "{}: key '{}': is {} ({}); it must be a count", file, key, to_text(entry->value),
         type_name(entry->value.type));
  }
  return number;
}

/// Where "-00001-of-00003.gguf" starts in a file name.
std::optional<size_t> suffix_at(const std::string& name) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (name.size() <= kPattern.size()) return std::nullopt;
  const size_t start = name.size() - kPattern.size();
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const char c = name[start + i];
    const bool fits = kPattern[i] == '0' ? c >= '0' && c <= '9' : c == kPattern[i];
    if (!fits) return std::nullopt;
  }
  return start;
}

}  // namespace

std::optional<SplitInfo> split_info(const Part& part, const std::string& file) {
  const auto count = integer(part, "split.count", file);
  if (!count || *count <= 1) return std::nullopt;
  if (*count > kMaxParts) {
    fail(ErrorKind::model, "{}: key 'split.count': is {}; at most {} parts are allowed", file, *count,
         kMaxParts);
  }
  const auto number = integer(part, "split.no", file);
  if (!number)
    fail(ErrorKind::model, "{}: key 'split.no': is missing, yet 'split.count' is {}", file, *count);
  if (*number >= *count) {
    fail(ErrorKind::model, "{}: key 'split.no': is {}; it must be below 'split.count', {}", file, *number,
         *count);
  }
  return SplitInfo{*number, *count, integer(part, "split.tensors.count", file)};
}

std::optional<std::filesystem::path> part_path(const std::filesystem::path& path, uint64_t number,
                                               uint64_t count) {
  const std::string name = path.filename().string();
  const auto start = suffix_at(name);
  if (!start) return std::nullopt;
  return path.parent_path() /
         fmt::format("{}-{:05}-of-{:05}.gguf", name.substr(0, *start), number + 1, count);
}

bool is_layout_key(std::string_view key) {
  return key.starts_with("split.") || key == "general.alignment";
}

void check_part(const std::function<const Entry*(std::string_view)>& find_first, const SplitInfo& split,
                const Part& part, uint64_t number, const std::string& file) {
  const auto info = split_info(part, file);
  if (!info || info->count != split.count) {
    fail(ErrorKind::model, "{}: key 'split.count': is {}; the first part says {}", file,
         info ? info->count : 1, split.count);
  }
  if (info->number != number) {
    fail(ErrorKind::model, "{}: key 'split.no': is {}; a part of this name must have {}", file, info->number,
         number);
  }
  for (const Entry& entry : part.entries) {
    if (is_layout_key(entry.key)) continue;
    const Entry* same = find_first(entry.key);
    if (same == nullptr || !std::ranges::equal(same->raw, entry.raw)) {
      fail(ErrorKind::model,
           "{}: key {}: is {}, which the first part does not say; the parts are not of one model", file,
           quoted(entry.key), to_text(entry.value));
    }
  }
}

}  // namespace retro::gguf
