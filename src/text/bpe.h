// Byte-level byte-pair encoding with ranked merges (Sennrich et al. 2016; Radford et al. 2019, GPT-2).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/merges.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"
#include "text/whole_words.h"

namespace retro::text {

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
