// Byte-level byte-pair encoding with ranked merges (Sennrich et al. 2016; Radford et al. 2019, GPT-2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"
#include "text/whole_words.h"

namespace retro::text {

/// The merges of a vocabulary by the pair of ids that they join.
class MergeTable {
 public:
  /// `merges` are "left right" in the byte alphabet, the best first. Of two equal merges the first counts;
  /// one whose parts or whole are control tokens is left out. Throws Error(model) naming the merge when it
  /// does not have two parts or its parts or their whole are no tokens.
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

class ByteLevelBpe {
 public:
  /// `vocabulary` must outlive the encoder. Throws Error(model), see Pretokenizer and MergeTable.
  ByteLevelBpe(const Vocabulary& vocabulary, const VocabularySource& source);

  /// Appends the tokens of `text` (well-formed UTF-8, without added tokens); spans are offsets into it.
  /// Throws Error(data) naming the byte when the vocabulary has no token for it. Safe to call from several
  /// threads.
  void encode(std::string_view text, std::vector<TokenSpan>& tokens) const;

 private:
  struct Workspace;
  void encode_piece(std::string_view text, size_t begin, size_t end, Workspace& work,
                    std::vector<TokenSpan>& tokens) const;
  void merge_piece(std::string_view text, size_t begin, size_t end, Workspace& work) const;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  MergeTable merges_;
  WholeWords whole_words_;
};

}  // namespace retro::text
