// GGUF files, written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "gguf/parse.h"
#include "gguf/value.h"

namespace retro::gguf {

/// Takes bytes in order.
using Sink = std::function<void(std::span<const std::byte>)>;
/// Hands a tensor's bytes to the sink, in as many pieces as it likes.
using Producer = std::function<void(const Sink&)>;

/// Gathers metadata and a tensor table and writes them as GGUF version 3. The bytes depend on nothing but
/// what was added and its order. Keys and names must be new, names have at most kMaxTensorName bytes:
/// Error(model) otherwise.
class Writer {
 public:
  /// An alignment other than 32 is also written as `general.alignment`.
  explicit Writer(uint32_t alignment = kDefaultAlignment);

  void add_u8(std::string_view key, uint8_t value);
  void add_i8(std::string_view key, int8_t value);
  void add_u16(std::string_view key, uint16_t value);
  void add_i16(std::string_view key, int16_t value);
  void add_u32(std::string_view key, uint32_t value);
  void add_i32(std::string_view key, int32_t value);
  void add_u64(std::string_view key, uint64_t value);
  void add_i64(std::string_view key, int64_t value);
  void add_f32(std::string_view key, float value);
  void add_f64(std::string_view key, double value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_strings(std::string_view key, std::span<const std::string_view> values);
  void add_u32s(std::string_view key, std::span<const uint32_t> values);
  void add_i32s(std::string_view key, std::span<const int32_t> values);
  void add_f32s(std::string_view key, std::span<const float> values);
  /// Any numbers or bools, as little-endian bytes.
  void add_numbers(std::string_view key, ValueType element, std::span<const std::byte> bytes);
  /// The entry of another file, byte for byte.
  void add_entry(const Entry& entry);

  /// Data as it shall lie in the file. It is not copied: it must live until the file is written.
  void add_tensor(std::string_view name, const std::vector<int64_t>& dims, DType dtype,
                  std::span<const std::byte> data);
  /// Numbers written as F32, or rounded to F16 or BF16 (`dtype`); not copied either.
  void add_tensor(std::string_view name, const std::vector<int64_t>& dims, DType dtype,
                  std::span<const float> values);
  /// Data that is made while the file is written, so that none of it need be in memory at once.
  void add_tensor(std::string_view name, const std::vector<int64_t>& dims, DType dtype, Producer producer);
  /// The tensor of another file.
  void add_tensor(const Tensor& tensor);

  /// Writes the file whole or not at all. Throws Error(io) naming the path.
  void write(const std::filesystem::path& path) const;
  /// Hands the file's bytes to the sink.
  void write(const Sink& sink) const;

 private:
  struct TableRow {
    std::string name;
    std::vector<int64_t> dims;
    DType dtype;
    uint64_t bytes;
    uint64_t offset;
    Producer producer;
  };

  std::string& begin_entry(std::string_view key, ValueType type);
  template <typename T>
  void add_number(std::string_view key, ValueType type, T value);
  template <typename T>
  void add_array(std::string_view key, ValueType type, std::span<const T> values);
  template <typename T>
  void add_string_array(std::string_view key, std::span<const T> values);
  std::string header() const;

  uint32_t alignment_;
  uint64_t entry_count_ = 0;
  std::string entries_;
  std::vector<TableRow> tensors_;
  uint64_t data_bytes_ = 0;  // padded
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> names_;
};

}  // namespace retro::gguf
