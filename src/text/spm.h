// SentencePiece-style byte-pair encoding of characters with byte fallback (Kudo and Richardson 2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/merges.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"
#include "text/whole_words.h"

namespace retro::text {

/// Starts from characters, with U+2581 for each space, and joins the neighbours whose joint text is the token
/// of the highest score, the leftmost of equals, until none is left. A vocabulary of kind character_bpe
/// merges by rank instead, within the pieces of its pre-tokenizer. A character that is no token becomes its
/// bytes' tokens, or the unknown token where the vocabulary has no byte tokens.
class SentencePieceBpe {
 public:
  /// `vocabulary` must outlive the encoder. Throws Error(model), see MergeTable.
  SentencePieceBpe(const Vocabulary& vocabulary, const VocabularySource& source);

  /// Appends the tokens of `text` (well-formed UTF-8, without added tokens); spans are offsets into it.
  /// `space_prefix` puts a space in front that belongs to no byte. Safe to call from several threads.
  void encode(std::string_view text, bool space_prefix, std::vector<TokenSpan>& tokens) const;

 private:
  struct Workspace;
  void encode_piece(size_t first, size_t last, Workspace& work, std::vector<TokenSpan>& tokens) const;
  void merge_piece(size_t first, size_t last, Workspace& work) const;
  void emit(std::string_view symbol, TokenId id, size_t begin, size_t end,
            std::vector<TokenSpan>& tokens) const;
  bool is_whole(TokenId whole, std::string_view text) const;
  size_t pair_bit(char32_t left, char32_t right) const;

  struct Ranked {
    Pretokenizer pretokenizer;
    MergeTable merges;
  };

  const Vocabulary& vocabulary_;
  std::unique_ptr<const Ranked> ranked_;  // nullptr: by score
  // Hashes of the character pairs inside tokens: no merge reaches across a pair that is not among them.
  std::vector<bool> joined_pairs_;
  WholeWords whole_words_;
};

}  // namespace retro::text
