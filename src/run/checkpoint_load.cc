#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "run/checkpoint.h"
#include "run/checkpoint_folders.h"
#include "run/manifest.h"
#include "run/signature_file.h"

namespace retro::run {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBufferSuffix = ".f32";

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  std::error_code error;
  if (!fs::exists(path, error)) {
    fail(ErrorKind::io, "{}: has no {}: it was not written to its end", folder.string(), kManifestName);
  }
  Manifest manifest = parse_manifest(read_file(path, kManifestLimit), path.string());
  const auto step = step_of_state(folder);
  if (step && *step != manifest.step) {
    fail(ErrorKind::io, "{}: is of step {}, not of the step its folder names", path.string(), manifest.step);
  }
  return manifest;
}

void check_sizes(const fs::path& folder, const Manifest& manifest) {
  for (const ManifestFile& file : manifest.files) {
    const fs::path path = folder / file.name;
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (error) fail(ErrorKind::io, "{}: cannot be read: {}", path.string(), error.message());
    if (bytes != file.bytes) {
      fail(ErrorKind::io, "{}: is {} bytes and was written with {}: it is damaged", path.string(), bytes,
           file.bytes);
    }
  }
}

/// A file of the checkpoint, mapped, once its size and checksum are those of the manifest.
MappedFile open_verified(const fs::path& folder, const ManifestFile& file) {
  MappedFile mapped(folder / file.name);
  if (mapped.bytes().size() != file.bytes) {
    fail(ErrorKind::io, "{}: is {} bytes and was written with {}: it is damaged", mapped.path().string(),
         mapped.bytes().size(), file.bytes);
  }
  Hasher hasher;
  hasher.update(mapped.bytes());
  if (hasher.hex() != file.xxh3_128) {
    fail(ErrorKind::io, "{}: does not match its checksum: it is damaged", mapped.path().string());
  }
  return mapped;
}

std::vector<float> floats(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() % sizeof(float) != 0) {
    fail(ErrorKind::io, "{}: its {} bytes are no whole number of f32 values", file.path().string(),
         bytes.size());
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

LoadedCheckpoint read_checkpoint(const fs::path& folder) {
  const Manifest manifest = read_manifest(folder);
  check_sizes(folder, manifest);
  LoadedCheckpoint loaded;
  loaded.path = folder;
  loaded.step = manifest.step;
  bool signature = false, state = false;
  for (const ManifestFile& entry : manifest.files) {
    const MappedFile file = open_verified(folder, entry);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (entry.name == "signature.json") {
      loaded.signature = parse_signature(text, file.path().string());
      signature = true;
    } else if (entry.name == "trainer.json") {
      loaded.state_json = text;
      state = true;
    } else if (entry.name.ends_with(kBufferSuffix)) {
      loaded.buffers.emplace_back(entry.name.substr(0, entry.name.size() - kBufferSuffix.size()),
                                  floats(file));
    } else {
      fail(ErrorKind::io, "{}: is no file that a checkpoint of this version has", file.path().string());
    }
  }
  if (!signature || !state) {
    fail(ErrorKind::io, "{}: lacks {}", folder.string(), signature ? "trainer.json" : "signature.json");
  }
  return loaded;
}

bool is_whole(const fs::path& folder) {
  try {
    const Manifest manifest = read_manifest(folder);
    check_sizes(folder, manifest);
    for (const ManifestFile& entry : manifest.files) open_verified(folder, entry);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Checkpoints of a folder, the one to resume from first.
std::vector<fs::path> candidates(const fs::path& directory) {
  std::vector<fs::path> states;
  for (const uint64_t step : checkpoint_steps(directory)) {
    if (const auto state = existing_state(step_state_path(directory, step))) states.push_back(*state);
  }
  if (const auto best = existing_state(best_state_path(directory))) states.push_back(*best);
  return states;
}

/// How to go on without `broken`.
std::string offer(const fs::path& directory, const fs::path& broken) {
  for (const fs::path& other : candidates(directory)) {
    if (other.filename() != broken.filename() && is_whole(other)) {
      return fmt::format("; the newest other checkpoint that is whole is {}: resume from it with --resume {}",
                         other.string(), other.string());
    }
  }
  return "; there is no other whole checkpoint beside it: start again without --resume";
}

/// Tells a path that was never a checkpoint from one that is damaged.
void check_is_state(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) fail(ErrorKind::io, "{}: there is no such checkpoint", path.string());
  if (!fs::is_directory(status)) {
    fail(ErrorKind::io,
         "{}: is a file; a checkpoint is a folder as step-000000000100.state (to start anew from the weights "
         "of "
         "an adapter, set [lora].init_adapter)",
         path.string());
  }
  if (fs::exists(path / kManifestName, error)) return;
  const auto inside = candidates(path);
  if (!inside.empty()) {
    fail(ErrorKind::io, "{}: is a folder of checkpoints; name one of them, as {}", path.string(),
         inside.front().string());
  }
}

}  // namespace

std::optional<fs::path> newest_checkpoint(const fs::path& directory) {
  const std::vector<fs::path> states = candidates(directory);
  if (states.empty()) return std::nullopt;
  try {
    check_sizes(states.front(), read_manifest(states.front()));
  } catch (const Error& failure) {
    throw Error(failure.kind(), failure.what() + offer(directory, states.front()));
  }
  return states.front();
}

LoadedCheckpoint load_checkpoint(const fs::path& state_folder) {
  fs::path path = state_folder.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  path = existing_state(path).value_or(path);
  check_is_state(path);
  try {
    return read_checkpoint(path);
  } catch (const Error& failure) {
    const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
    throw Error(failure.kind(), failure.what() + offer(directory, path));
  }
}

}  // namespace retro::run
