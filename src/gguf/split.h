// Models split over several files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "gguf/parse.h"

namespace retro::gguf {

/// What the `split.*` keys of a part say.
struct SplitInfo {
  uint64_t number = 0;  // counted from 0
  uint64_t count = 0;
  std::optional<uint64_t> tensors;  // in all parts
};

/// The split of a part; nothing when the file is a whole model (no `split.count`, or one of 0 or 1).
std::optional<SplitInfo> split_info(const Part& part, const std::string& file);

/// `NAME-00002-of-00003.gguf` for number 1 of 3, from the path of any part of the same split; nothing when
/// `path` is not named so.
std::optional<std::filesystem::path> part_path(const std::filesystem::path& path, uint64_t number,
                                               uint64_t count);

/// Whether a key says how the content lies in files, not what it is.
bool is_layout_key(std::string_view key);

/// Checks that `part` is number `number` of the split. Its metadata beyond the layout must repeat that of the
/// first part, of which `find_first` finds an entry by its key, or nullptr.
void check_part(const std::function<const Entry*(std::string_view)>& find_first, const SplitInfo& split,
                const Part& part, uint64_t number, const std::string& file);

}  // namespace retro::gguf
