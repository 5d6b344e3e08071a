// Metadata and tensors of a GGUF file, as views into its mapping.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/dtype.h"

namespace retro::gguf {

using tensor::DType;

/// A metadata value's type, numbered as in the file.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

/// "u32", "bool", "string"…; "type 77" for an unknown one.
std::string type_name(ValueType type);

/// Bytes of one number or bool; 0 for strings, arrays and unknown types.
size_t type_bytes(ValueType type);

/// Numbers or bools packed as they lie in the file: little endian, not aligned.
struct NumberArray {
  ValueType element;
  std::span<const std::byte> bytes;

  size_t size() const {
    const size_t width = type_bytes(element);
    return width == 0 ? 0 : bytes.size() / width;
  }
};

using StringArray = std::vector<std::string_view>;

/// A value, widened without loss: every unsigned type as uint64_t, every signed one as int64_t, f32 and f64
/// as double. `type` is the one in the file.
struct Value {
  ValueType type;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, NumberArray, StringArray> data;

  /// An integer of any width, if the value is one and fits.
  std::optional<uint64_t> as_u64() const;
  std::optional<int64_t> as_i64() const;
};

/// One number of an array, widened as in Value (a bool as 0 or 1).
std::variant<uint64_t, int64_t, double> element(const NumberArray& array, size_t index);

/// The value in a line for people: strings quoted, control characters escaped, cut to about `limit`
/// characters, arrays as "[262144] 1, 2, …".
std::string to_text(const Value& value, size_t limit = 60);

struct Entry {
  std::string_view key;
  Value value;
  std::span<const std::byte> raw;  // the type and the value as they lie in the file
};

/// A tensor of the table. Dimensions follow ggml: dims[0] is the length of a row, absent ones are 1.
struct Tensor {
  std::string_view name;
  DType dtype;
  std::array<int64_t, 4> dims;
  const std::byte* data;  // aligned to at least 8 bytes
  uint64_t bytes;

  int64_t cols() const { return dims[0]; }
  int64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  int64_t elements() const { return cols() * rows(); }
  std::span<const std::byte> span() const { return {data, bytes}; }
};

/// "[576, 49152]", without trailing ones.
std::string shape_text(const Tensor& tensor);

/// Text from a file, fit for an error message: in single quotes, control and non-ASCII bytes escaped, cut
/// when long.
std::string quoted(std::string_view text, size_t limit = 80);

}  // namespace retro::gguf
