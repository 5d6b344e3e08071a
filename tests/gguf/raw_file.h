// GGUF files put together field by field, right or wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace retro::gguf::test {

class RawFile {
 public:
  /// Magic, version and the two counts.
  RawFile(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
    text_ = "GGUF";
    number(version).number(tensors).number(entries);
  }

  template <typename T>
  RawFile& number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }

  RawFile& string(std::string_view value) {
    number(uint64_t{value.size()});
    text_ += value;
    return *this;
  }

  RawFile& bytes(size_t count, char value = 0) {
    text_.append(count, value);
    return *this;
  }

  RawFile& entry_u32(std::string_view key, uint32_t value) {
    return string(key).number(uint32_t{4}).number(value);
  }

  RawFile& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
    string(name).number(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }

  /// Fills up to the start of the data.
  RawFile& pad(size_t alignment = 32) { return bytes((alignment - text_.size() % alignment) % alignment); }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace retro::gguf::test
