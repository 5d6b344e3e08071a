// A GGUF model or adapter, of one file or several, mapped and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "gguf/value.h"

namespace retro::gguf {

struct SplitInfo;

/// Everything it hands out (strings, arrays, tensor data) points into the mapping and lives as long as the
/// reader; moving a reader keeps it valid.
class Reader {
 public:
  /// Maps and checks `path`. A model split over `NAME-00001-of-00003.gguf` … is opened by its first part; the
  /// others are looked for beside it. Throws Error(io) when a file cannot be opened and Error(model) for
  /// anything that is wrong inside one, naming file, key or tensor.
  explicit Reader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// The files in order, one unless the model is split.
  const std::vector<MappedFile>& files() const { return files_; }
  /// Format version of the first file, 2 or 3.
  uint32_t version() const { return version_; }

  /// Metadata of the first file in its order, `split.*` included.
  std::span<const Entry> entries() const { return entries_; }
  /// Tensors of all parts in table order.
  std::span<const Tensor> tensors() const { return tensors_; }
  uint64_t tensor_bytes() const;

  /// The value, or nullptr.
  const Value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Typed values. Without a default an absent key is an Error(model) naming file and key; a value of another
  // type, or an integer outside of the asked type, always is. Any integer type is read as any other that
  // holds the value.
  uint32_t get_u32(std::string_view key) const;
  uint32_t get_u32(std::string_view key, uint32_t otherwise) const;
  int64_t get_i64(std::string_view key) const;
  int64_t get_i64(std::string_view key, int64_t otherwise) const;
  /// An f32, or an f64 rounded.
  float get_f32(std::string_view key) const;
  float get_f32(std::string_view key, float otherwise) const;
  bool get_bool(std::string_view key) const;
  bool get_bool(std::string_view key, bool otherwise) const;
  std::string_view get_string(std::string_view key) const;
  std::string_view get_string(std::string_view key, std::string_view otherwise) const;
  std::span<const std::string_view> get_strings(std::string_view key) const;
  std::vector<uint32_t> get_u32s(std::string_view key) const;
  std::vector<int32_t> get_i32s(std::string_view key) const;
  std::vector<float> get_f32s(std::string_view key) const;
  /// One bool per element.
  std::vector<uint8_t> get_bools(std::string_view key) const;
  /// `count` numbers: an array of that length, or one number for all (as per-layer settings are written).
  std::vector<uint32_t> get_u32_per_layer(std::string_view key, size_t count) const;

  /// The tensor, or nullptr.
  const Tensor* find_tensor(std::string_view name) const;
  /// The tensor; an absent one is an Error(model) naming file and tensor.
  const Tensor& tensor(std::string_view name) const;

  /// XXH3-128, as 32 hex digits, over the model's content: how many metadata entries and tensors there are
  /// (u64 each); then for each entry in file order its key (u64 length, bytes), type (u32) and value as they
  /// lie in the file; then for each tensor in table order its name (u64 length, bytes), four dimensions (u64,
  /// absent ones 1), type (u32) and data. Numbers are little endian. Left out is what says how the content
  /// lies in files: the keys `split.*` and `general.alignment`, offsets and padding; so a split model and its
  /// whole have one fingerprint. `progress` is called with bytes done and in all every few megabytes; what it
  /// throws passes through.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  std::string fingerprint(const Progress& progress = {}) const;

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& message) const;
  const Value& require(std::string_view key) const;
  template <typename T>
  T integer(std::string_view key, const Value& value) const;
  template <typename T>
  std::vector<T> integers(std::string_view key) const;
  const NumberArray& numbers(std::string_view key, const char* expected) const;
  const Entry* find_entry(std::string_view key) const;
  void open_others(const SplitInfo& split);

  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  uint32_t version_ = 0;
  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
  std::vector<uint32_t> keys_by_name_;     // indexes into entries_, sorted by key
  std::vector<uint32_t> tensors_by_name_;  // indexes into tensors_, sorted by name
};

}  // namespace retro::gguf
