// The typed values of a Reader.
#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "gguf/reader.h"

namespace retro::gguf {
namespace {

template <typename T>
constexpr const char* kNameOf = nullptr;
template <>
constexpr const char* kNameOf<uint32_t> = "an integer from 0 to 4294967295";
template <>
constexpr const char* kNameOf<int32_t> = "a 32-bit integer";
template <>
constexpr const char* kNameOf<int64_t> = "a 64-bit integer";

/// The number as a T, or nothing when it does not fit.
template <typename T>
std::optional<T> fit(const std::variant<uint64_t, int64_t, double>& number) {
  if (const auto* u = std::get_if<uint64_t>(&number)) {
    if (std::in_range<T>(*u)) return static_cast<T>(*u);
  } else if (const auto* i = std::get_if<int64_t>(&number)) {
    if (std::in_range<T>(*i)) return static_cast<T>(*i);
  }
  return std::nullopt;
}

/// "u32 7", "array of string [3] 'a', …": a value with its type, for errors.
std::string describe(const Value& value) {
  std::string type = type_name(value.type);
  if (std::holds_alternative<StringArray>(value.data)) type = "array of strings";
  if (const auto* array = std::get_if<NumberArray>(&value.data))
    type = "array of " + type_name(array->element);
  return type + " " + to_text(value);
}

}  // namespace

void Reader::refuse(std::string_view key, const std::string& message) const {
  fail(ErrorKind::model, "{}: key {}: {}", path_.string(), quoted(key), message);
}

const Value& Reader::require(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) refuse(key, "is missing; the model is incomplete");
  return *value;
}

template <typename T>
T Reader::integer(std::string_view key, const Value& value) const {
  if (const auto number = value.as_u64(); number && std::in_range<T>(*number)) return static_cast<T>(*number);
  if (const auto number = value.as_i64(); number && std::in_range<T>(*number)) return static_cast<T>(*number);
  refuse(key, fmt::format("is {}; it must be {}", describe(value), kNameOf<T>));
}

const NumberArray& Reader::numbers(std::string_view key, const char* expected) const {
  const Value& value = require(key);
  const auto* array = std::get_if<NumberArray>(&value.data);
  if (array == nullptr)
    refuse(key, fmt::format("is {}; it must be an array of {}", describe(value), expected));
  return *array;
}

template <typename T>
std::vector<T> Reader::integers(std::string_view key) const {
  const NumberArray& array = numbers(key, "integers");
  std::vector<T> result(array.size());
  for (size_t i = 0; i < result.size(); ++i) {
    const auto number = array.element == ValueType::boolean ? std::nullopt : fit<T>(element(array, i));
    if (!number) {
      refuse(key, fmt::format("is {}; element {} must be {}", describe(require(key)), i, kNameOf<T>));
    }
    result[i] = *number;
  }
  return result;
}

uint32_t Reader::get_u32(std::string_view key) const {
  return integer<uint32_t>(key, require(key));
}

uint32_t Reader::get_u32(std::string_view key, uint32_t otherwise) const {
  return has(key) ? get_u32(key) : otherwise;
}

int64_t Reader::get_i64(std::string_view key) const {
  return integer<int64_t>(key, require(key));
}

int64_t Reader::get_i64(std::string_view key, int64_t otherwise) const {
  return has(key) ? get_i64(key) : otherwise;
}

float Reader::get_f32(std::string_view key) const {
  const Value& value = require(key);
  const auto* number = std::get_if<double>(&value.data);
  if (number == nullptr) refuse(key, fmt::format("is {}; it must be an f32", describe(value)));
  return static_cast<float>(*number);
}

float Reader::get_f32(std::string_view key, float otherwise) const {
  return has(key) ? get_f32(key) : otherwise;
}

bool Reader::get_bool(std::string_view key) const {
  const Value& value = require(key);
  const auto* flag = std::get_if<bool>(&value.data);
  if (flag == nullptr) refuse(key, fmt::format("is {}; it must be a bool", describe(value)));
  return *flag;
}

bool Reader::get_bool(std::string_view key, bool otherwise) const {
  return has(key) ? get_bool(key) : otherwise;
}

std::string_view Reader::get_string(std::string_view key) const {
  const Value& value = require(key);
  const auto* text = std::get_if<std::string_view>(&value.data);
  if (text == nullptr) refuse(key, fmt::format("is {}; it must be a string", describe(value)));
  return *text;
}

std::string_view Reader::get_string(std::string_view key, std::string_view otherwise) const {
  return has(key) ? get_string(key) : otherwise;
}

std::span<const std::string_view> Reader::get_strings(std::string_view key) const {
  const Value& value = require(key);
  const auto* strings = std::get_if<StringArray>(&value.data);
  if (strings == nullptr) refuse(key, fmt::format("is {}; it must be an array of strings", describe(value)));
  return *strings;
}

std::vector<uint32_t> Reader::get_u32s(std::string_view key) const {
  return integers<uint32_t>(key);
}

std::vector<int32_t> Reader::get_i32s(std::string_view key) const {
  return integers<int32_t>(key);
}

std::vector<float> Reader::get_f32s(std::string_view key) const {
  const NumberArray& array = numbers(key, "f32");
  if (array.element != ValueType::f32 && array.element != ValueType::f64) {
    refuse(key, fmt::format("is {}; it must be an array of f32", describe(require(key))));
  }
  std::vector<float> result(array.size());
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(std::get<double>(element(array, i)));
  return result;
}

std::vector<uint8_t> Reader::get_bools(std::string_view key) const {
  const NumberArray& array = numbers(key, "bools");
  if (array.element != ValueType::boolean) {
    refuse(key, fmt::format("is {}; it must be an array of bools", describe(require(key))));
  }
  std::vector<uint8_t> result(array.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = std::to_integer<uint8_t>(array.bytes[i]);
  return result;
}

std::vector<uint32_t> Reader::get_u32_per_layer(std::string_view key, size_t count) const {
  const Value& value = require(key);
  if (!std::holds_alternative<NumberArray>(value.data)) {
    return std::vector<uint32_t>(count, integer<uint32_t>(key, value));
  }
  auto result = get_u32s(key);
  if (result.size() != count) {
    refuse(key,
           fmt::format("has {} elements; it must have one for each of the {} layers", result.size(), count));
  }
  return result;
}

}  // namespace retro::gguf
