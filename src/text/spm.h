// SentencePiece-style byte-pair encoding with scores and byte fallback (Kudo and Richardson 2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/vocabulary.h"
#include "text/whole_words.h"

namespace retro::text {

/// Starts from characters, with U+2581 for each space, and joins the neighbours whose joint text is the token
/// of the highest score, the leftmost of equals, until none is left. A character that is no token becomes its
/// bytes' tokens, or the unknown token where the vocabulary has no byte tokens.
class SentencePieceBpe {
 public:
  /// `vocabulary` must outlive the encoder.
  explicit SentencePieceBpe(const Vocabulary& vocabulary);

  /// Appends the tokens of `text` (well-formed UTF-8, without added tokens); spans are offsets into it.
  /// `space_prefix` puts a space in front that belongs to no byte. Safe to call from several threads.
  void encode(std::string_view text, bool space_prefix, std::vector<TokenSpan>& tokens) const;

 private:
  struct Workspace;
  void encode_piece(size_t first, size_t last, Workspace& work, std::vector<TokenSpan>& tokens) const;
  void merge_piece(size_t first, size_t last, Workspace& work) const;
  void emit(std::string_view symbol, TokenId id, size_t begin, size_t end,
            std::vector<TokenSpan>& tokens) const;
  size_t pair_bit(char32_t left, char32_t right) const;

  const Vocabulary& vocabulary_;
  // Hashes of the character pairs inside tokens: no merge reaches across a pair that is not among them.
  std::vector<bool> joined_pairs_;
  WholeWords whole_words_;
};

}  // namespace retro::text
