// manifest.json, which closes a checkpoint folder: what belongs to it, with sizes and checksums.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retro::run {

struct ManifestFile {
  std::string name;  ///< 1 to 128 of [a-z0-9_.-], not starting with a dot
  uint64_t bytes = 0;
  std::string xxh3_128;  ///< 32 lower-case hex digits
};

struct Manifest {
  uint64_t step = 0;
  std::vector<ManifestFile> files;
};

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr uint64_t kManifestLimit = 1 << 20;  ///< bytes of a manifest

bool is_checkpoint_file_name(std::string_view name);

/// The text of a manifest; its last field is a checksum over the others.
std::string manifest_text(const Manifest& manifest);

/// Reads what `manifest_text` wrote. `where` names the file in errors, which are Error(io) and say the field
/// at fault. Sizes and names are checked for form only: nothing here looks at the files.
Manifest parse_manifest(std::string_view text, const std::string& where);

}  // namespace retro::run
