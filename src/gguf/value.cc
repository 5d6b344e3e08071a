#include "gguf/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace retro::gguf {
namespace {

struct TypeRow {
  ValueType type;
  std::string_view name;
  size_t bytes;
};

constexpr TypeRow kTypes[] = {
    {ValueType::u8, "u8", 1},       {ValueType::i8, "i8", 1},        {ValueType::u16, "u16", 2},
    {ValueType::i16, "i16", 2},     {ValueType::u32, "u32", 4},      {ValueType::i32, "i32", 4},
    {ValueType::f32, "f32", 4},     {ValueType::boolean, "bool", 1}, {ValueType::string, "string", 0},
    {ValueType::array, "array", 0}, {ValueType::u64, "u64", 8},      {ValueType::i64, "i64", 8},
    {ValueType::f64, "f64", 8},
};

const TypeRow* find_type(ValueType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string number_text(const NumberArray& array, size_t index) {
  const auto number = element(array, index);
  if (array.element == ValueType::boolean) return std::get<uint64_t>(number) != 0 ? "true" : "false";
  return std::visit([](auto x) { return fmt::format("{}", x); }, number);
}

template <typename Item>
std::string list_text(size_t size, size_t limit, Item item) {
  std::string text = fmt::format("[{}]", size);
  for (size_t i = 0; i < size; ++i) {
    text += i == 0 ? " " : ", ";
    if (text.size() > limit) return text + "…";
    text += item(i);
  }
  return text;
}

/// Bytes of the character that `text` starts with; 0 when they are not UTF-8 or would act on a terminal.
size_t printable_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  uint32_t code = byte(0) & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kSmallest[] = {0xa0, 0x800, 0x10000};  // below: too long a form, or a control character
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  // U+2028 to U+202E and U+2066 to U+2069 break lines or turn the direction of writing.
  const bool formatting = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return byte(0) >= 0xc0 && code >= kSmallest[length - 2] && code <= 0x10ffff && !surrogate && !formatting
             ? length
             : 0;
}

}  // namespace

std::string type_name(ValueType type) {
  const TypeRow* row = find_type(type);
  return row != nullptr ? std::string(row->name) : fmt::format("type {}", static_cast<uint32_t>(type));
}

size_t type_bytes(ValueType type) {
  const TypeRow* row = find_type(type);
  return row != nullptr ? row->bytes : 0;
}

std::optional<uint64_t> Value::as_u64() const {
  if (const auto* number = std::get_if<uint64_t>(&data)) return *number;
  if (const auto* number = std::get_if<int64_t>(&data); number != nullptr && *number >= 0) {
    return static_cast<uint64_t>(*number);
  }
  return std::nullopt;
}

std::optional<int64_t> Value::as_i64() const {
  if (const auto* number = std::get_if<int64_t>(&data)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&data); number != nullptr && *number <= INT64_MAX) {
    return static_cast<int64_t>(*number);
  }
  return std::nullopt;
}

std::variant<uint64_t, int64_t, double> element(const NumberArray& array, size_t index) {
  RETRO_CHECK(index < array.size());
  const std::byte* at = array.bytes.data() + index * type_bytes(array.element);
  switch (array.element) {
    case ValueType::u8:
    case ValueType::boolean:
      return uint64_t{load<uint8_t>(at)};
    case ValueType::i8:
      return int64_t{load<int8_t>(at)};
    case ValueType::u16:
      return uint64_t{load<uint16_t>(at)};
    case ValueType::i16:
      return int64_t{load<int16_t>(at)};
    case ValueType::u32:
      return uint64_t{load<uint32_t>(at)};
    case ValueType::i32:
      return int64_t{load<int32_t>(at)};
    case ValueType::u64:
      return load<uint64_t>(at);
    case ValueType::i64:
      return load<int64_t>(at);
    case ValueType::f32:
      return double{load<float>(at)};
    case ValueType::f64:
      return load<double>(at);
    default:
      RETRO_CHECK(false && "an array of numbers");
      return uint64_t{0};
  }
}

std::string to_text(const Value& value, size_t limit) {
  if (const auto* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string_view>(&value.data)) return quoted(*text, limit);
  if (const auto* array = std::get_if<NumberArray>(&value.data)) {
    return list_text(array->size(), limit, [&](size_t i) { return number_text(*array, i); });
  }
  if (const auto* array = std::get_if<StringArray>(&value.data)) {
    return list_text(array->size(), limit, [&](size_t i) { return quoted((*array)[i], limit); });
  }
  if (const auto* number = std::get_if<double>(&value.data)) {
    // The shortest digits that name the stored number; a widened f32 would show its binary tail.
    if (value.type == ValueType::f32) return fmt::format("{}", static_cast<float>(*number));
    return fmt::format("{}", *number);
  }
  if (const auto* number = std::get_if<int64_t>(&value.data)) return fmt::format("{}", *number);
  return fmt::format("{}", std::get<uint64_t>(value.data));
}

std::string shape_text(const Tensor& tensor) {
  size_t rank = 4;
  while (rank > 1 && tensor.dims[rank - 1] == 1) --rank;
  return fmt::format("[{}]",
                     fmt::join(tensor.dims.begin(), tensor.dims.begin() + static_cast<int>(rank), ", "));
}

std::string quoted(std::string_view text, size_t limit) {
  std::string result = "'";
  size_t at = 0;
  while (at < text.size() && at < limit) {
    const size_t length = printable_length(text.substr(at));
    if (length > 0) {
      result += text.substr(at, length);
    } else if (text[at] == '\n') {
      result += "\\n";
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    }
    at += std::max<size_t>(length, 1);
  }
  result += at < text.size() ? "…'" : "'";
  return result;
}

}  // namespace retro::gguf
