// Checkpoints: a folder `step-<12 digits>.state` or `best.state` with the adapter as GGUF beside it.
//
// A folder holds `signature.json`, `trainer.json`, one `NAME.f32` a buffer (little-endian) and, written last,
// `manifest.json` with the size and XXH3-128 of each. It is filled under `….state.tmp`, synced and renamed.
//
// At every instant each `….state` is whole and has a whole adapter beside it:
// - saving puts the adapter in place first, then the folder; a crash between leaves an adapter that the
// resumed
//   run writes again, to the same bytes;
// - an existing folder is exchanged with the new one (RENAME_EXCHANGE) or, where the file system cannot,
// moved to
//   `….state.old` first, which counts as the checkpoint while `….state` is missing;
// - pruning renames to `….state.deleted` first, then removes the adapter, then the folder.
// The next save, or `prepare_checkpoint_directory`, finishes or undoes what a crash left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/signature.h"

namespace retro::run {

/// Values of the training state under a name of [a-z0-9_.-], such as "weights"; never copied as a whole.
struct Buffer {
  std::string name;
  std::span<const float> values;
};

struct CheckpointContent {
  uint64_t step = 0;
  Signature signature;
  std::string
      state_json;  ///< the trainer's own small state (counters, cursor, metrics so far), kept byte for byte
  std::vector<Buffer> buffers;
  /// Writes the adapter to the path, whole or not at all; none: no adapter stands beside the state.
  std::function<void(const std::filesystem::path&)> write_adapter;
};

struct LoadedCheckpoint {
  std::filesystem::path path;
  uint64_t step = 0;
  Signature signature;
  std::string state_json;
  std::vector<std::pair<std::string, std::vector<float>>> buffers;  ///< in the order they were saved
};

/// Creates the folder where it is missing, writes a probe file, and cleans what broken saves left. Called
/// before training so that a folder that cannot be written is told before anything was computed. Throws
/// Error(io).
void prepare_checkpoint_directory(const std::filesystem::path& directory);

/// Writes `step-<12 digits>.state` and `.gguf`, then keeps only the `keep_last` newest step checkpoints up to
/// this step. Throws Error(io) naming path and cause when anything cannot be written; every earlier
/// checkpoint is then as it was.
void save_step_checkpoint(const std::filesystem::path& directory, const CheckpointContent& content,
                          std::optional<int64_t> keep_last);

/// Replaces `best.state` and `best.gguf`, as `save_step_checkpoint`.
void save_best_checkpoint(const std::filesystem::path& directory, const CheckpointContent& content);

std::filesystem::path step_state_path(const std::filesystem::path& directory, uint64_t step);
std::filesystem::path step_adapter_path(const std::filesystem::path& directory, uint64_t step);
std::filesystem::path best_adapter_path(const std::filesystem::path& directory);

/// The newest `step-*.state` of a folder, else `best.state` (or its `.old`), else none; none too where the
/// folder is missing. Checks manifest and sizes: when the newest is incomplete, throws Error(io) naming it,
/// what is wrong with it and the newest checkpoint that is whole.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& directory);

/// Reads a checkpoint, every size and checksum verified before its content is used. Throws Error(io) naming
/// file and fault, and offering the newest other checkpoint of the folder that is whole.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& state_folder);

}  // namespace retro::run
