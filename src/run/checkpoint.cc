#include "run/checkpoint.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "run/checkpoint_folders.h"
#include "run/manifest.h"
#include "run/signature_file.h"

namespace retro::run {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "buffers are written as they lie in memory");

constexpr size_t kChunkBytes = 4 << 20;

ManifestFile write_part(const fs::path& folder, const std::string& name, std::span<const std::byte> bytes) {
  RETRO_CHECK(is_checkpoint_file_name(name));
  OutputFile file(folder / name);
  Hasher hasher;
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const auto chunk = bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at));
    hasher.update(chunk);
    file.write(chunk);
  }
  file.commit();
  return {name, bytes.size(), hasher.hex()};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

void write_state(const fs::path& folder, const CheckpointContent& content) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorKind::io, "{}: cannot create the folder: {}", folder.string(), error.message());
  Manifest manifest{content.step, {}};
  manifest.files.push_back(write_part(folder, "signature.json", bytes_of(signature_text(content.signature))));
  manifest.files.push_back(write_part(folder, "trainer.json", bytes_of(content.state_json)));
  std::set<std::string> names;
  for (const Buffer& buffer : content.buffers) {
    RETRO_CHECK(names.insert(buffer.name).second);
    manifest.files.push_back(write_part(folder, buffer.name + ".f32", std::as_bytes(buffer.values)));
  }
  write_file(folder / kManifestName, manifest_text(manifest));
}

void discard(const fs::path& fresh, const fs::path& state, const fs::path& adapter) {
  std::error_code error;
  if (step_of_state(state) && !existing_state(state)) fs::remove(adapter, error);
  fs::remove_all(fresh, error);
}

void save(const fs::path& state, const fs::path& adapter, const CheckpointContent& content) {
  const fs::path fresh = with_suffix(state, ".tmp");
  try {
    write_state(fresh, content);
    // Before the folder takes its name, so that no state is ever without its adapter.
    if (content.write_adapter) content.write_adapter(adapter);
    replace_state(fresh, state);
  } catch (const Error& failure) {
    discard(fresh, state, adapter);
    throw Error(
        failure.kind(),
        fmt::format("cannot save the checkpoint of step {}: {} (earlier checkpoints are as they were)",
                    content.step, failure.what()));
  } catch (...) {
    discard(fresh, state, adapter);
    throw;
  }
}

void prune(const fs::path& directory, uint64_t newest, int64_t keep_last) {
  std::vector<uint64_t> steps = checkpoint_steps(directory);
  // Later ones are of a run that was resumed further back; it writes them again when it gets there.
  std::erase_if(steps, [newest](uint64_t step) { return step > newest; });
  for (size_t i = static_cast<size_t>(std::max<int64_t>(keep_last, 1)); i < steps.size(); ++i) {
    try {
      remove_step(directory, steps[i]);
    } catch (const Error& failure) {
      log_warn("cannot remove an old checkpoint: {}", failure.what());
    }
  }
}

void prepare(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    fail(ErrorKind::io, "{}: cannot create the checkpoint folder: {}", directory.string(), error.message());
  }
  clean_leftovers(directory);
}

}  // namespace

void prepare_checkpoint_directory(const fs::path& directory) {
  prepare(directory);
  const fs::path probe = directory / ".probe";
  write_file(probe, "retrograd\n");
  std::error_code error;
  fs::remove(probe, error);
}

void save_step_checkpoint(const fs::path& directory, const CheckpointContent& content,
                          std::optional<int64_t> keep_last) {
  prepare(directory);
  save(step_state_path(directory, content.step), step_adapter_path(directory, content.step), content);
  if (keep_last) prune(directory, content.step, *keep_last);
}

void save_best_checkpoint(const fs::path& directory, const CheckpointContent& content) {
  prepare(directory);
  save(best_state_path(directory), best_adapter_path(directory), content);
}

}  // namespace retro::run
