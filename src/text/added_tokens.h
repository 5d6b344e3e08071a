// Tokens that are recognised as whole strings, ahead of any merging: control, unknown and user-defined ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace retro::text {

/// A token and the bytes [begin, end) of the text that it stands for.
struct TokenSpan {
  TokenId id = kNoToken;
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const TokenSpan& other) const = default;
};

/// Finds added tokens in text. Longer tokens win over shorter ones that overlap them, wherever they start,
/// and among tokens of one length the leftmost wins: the order in which llama.cpp cuts a text.
class AddedTokens {
 public:
  explicit AddedTokens(const Vocabulary& vocabulary);

  /// Says whether `id` may be recognised at bytes [begin, end) of the text.
  using Allowed = std::function<bool(TokenId id, size_t begin, size_t end)>;

  /// The tokens in bytes [begin, end) of `text`, in order, without overlap.
  std::vector<TokenSpan> find(std::string_view text, size_t begin, size_t end, const Allowed& allowed) const;

 private:
  struct Entry {
    std::string text;
    TokenId id;
    int32_t shorter;  // the longest other entry that is a prefix of this one; -1 when there is none
  };
  struct Candidate {
    size_t begin;
    int32_t entry;
  };

  int32_t longest_at(std::string_view text, size_t at) const;
  int32_t allowed_at(int32_t entry, size_t at, const Allowed& allowed) const;
  size_t length(int32_t entry) const { return entries_[static_cast<size_t>(entry)].text.size(); }
  void resolve(std::vector<Candidate> cluster, const Allowed& allowed, std::vector<TokenSpan>& found) const;

  std::vector<Entry> entries_;  // in the order of their bytes
  std::array<uint32_t, 257>
      first_byte_{};  // entries that begin with byte b: [first_byte_[b], first_byte_[b + 1])
};

}  // namespace retro::text
