// The texts of a vocabulary, packed, with a table from text to id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace retro::text {

using TokenId = int32_t;

inline constexpr TokenId kNoToken = -1;

/// Strings back to back in one block.
class PackedStrings {
 public:
  void reserve(size_t count, size_t bytes);
  void push_back(std::string_view string);
  size_t size() const { return ends_.size() - 1; }
  std::string_view operator[](size_t index) const {
    return std::string_view(bytes_).substr(ends_[index], ends_[index + 1] - ends_[index]);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_{0};
};

/// Token texts by id and ids by text: a quarter of a million of them are indexed in some milliseconds.
class TokenTexts {
 public:
  /// Copies `texts`. Empty ones have no entry in the table. Throws Error(model) naming both ids when two are
  /// equal.
  explicit TokenTexts(std::span<const std::string_view> texts);

  size_t size() const { return texts_.size(); }
  std::string_view operator[](TokenId id) const { return texts_[static_cast<size_t>(id)]; }
  size_t longest() const { return longest_; }

  /// The id of `text`, kNoToken when it is no token's text.
  TokenId find(std::string_view text) const;

 private:
  struct Slot {
    uint32_t tag = 0;
    TokenId id = kNoToken;
  };

  PackedStrings texts_;
  std::vector<Slot> slots_;  // open addressing, linear probing; a power of two, at most half full
  size_t longest_ = 0;
};

/// Text from a file, fit for an error message: control characters escaped, cut when long.
std::string printable(std::string_view text);

}  // namespace retro::text
