// The ranked merges of byte-pair encoding (Sennrich et al. 2016).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace retro::text {

/// The merges of a vocabulary by the pair of ids that they join.
class MergeTable {
 public:
  /// `merges` are "left right", each spelled as the token, the best first. Of two equal merges the first
  /// counts; one whose parts or whole are control tokens is left out. Throws Error(model) naming the merge
  /// when it does not have two parts or its parts or their whole are no tokens.
  MergeTable(const Vocabulary& vocabulary, std::span<const std::string_view> merges);

  struct Merge {
    TokenId left = kNoToken;
    TokenId right = kNoToken;
    TokenId whole = kNoToken;
    uint32_t rank = 0;
  };
  /// nullptr when the pair does not merge.
  const Merge* find(TokenId left, TokenId right) const;

 private:
  size_t slot(TokenId left, TokenId right) const;
  void insert(const Merge& merge);

  std::vector<Merge> slots_;  // open addressing, linear probing; a power of two, at most half full
};

}  // namespace retro::text
