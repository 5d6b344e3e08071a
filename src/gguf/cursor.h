// A bounded walk over a file's bytes that says where it stands when something is wrong.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "gguf/value.h"

namespace retro::gguf {

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  const std::byte* here() const { return bytes_.data() + position_; }

  /// What is being read, for errors: "metadata key", 3, then its name once it is known.
  void enter(const char* part, uint64_t index) {
    part_ = part;
    index_ = index;
    name_ = {};
  }
  void name(std::string_view name) { name_ = name; }

  template <typename T>
  T read(const char* field) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }

  /// A length and that many bytes.
  std::string_view read_string(const char* field) {
    const auto length = read<uint64_t>(field);
    const auto bytes = take(length, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::span<const std::byte> take(uint64_t count, const char* field) {
    if (count > remaining()) {
      refuse(
          "{} needs {} bytes at byte {}, but the file ends at byte {}: it is incomplete or damaged, fetch it "
          "again",
          field, count, position_, bytes_.size());
    }
    const auto result = bytes_.subspan(position_, count);
    position_ += count;
    return result;
  }

  /// Throws Error(model) in front of which stand the file and the key or tensor being read.
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    const Error error(ErrorKind::model, fmt::format(format, std::forward<Args>(args)...));
    throw error.within(frame());
  }

 private:
  std::string frame() const {
    if (part_ == nullptr) return file_;
    if (name_.empty()) return fmt::format("{}: {} {}", file_, part_, index_);
    return fmt::format("{}: {} {}", file_, part_, quoted(name_));
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  size_t position_ = 0;
  const char* part_ = nullptr;
  uint64_t index_ = 0;
  std::string_view name_;
};

}  // namespace retro::gguf
