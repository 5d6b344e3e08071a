// Text to tokens and back, as the model's file prescribes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/vocabulary.h"

namespace retro::text {

class ByteLevelBpe;
class SentencePieceBpe;

/// Bytes [begin, end) of a text and who wrote them. Control tokens are recognised only inside what the
/// template wrote (or a turn that is marked raw); neighbouring runs of one kind count as one.
struct TextRun {
  size_t begin = 0;
  size_t end = 0;
  bool from_template = false;
};

/// Ids equal llama.cpp's for the vocabularies that both read, with one exception: a control token never comes
/// out of merging ordinary text. Ill-formed UTF-8 is read as U+FFFD, one for each maximal ill-formed subpart
/// (Unicode 3.9), as Python's `errors="replace"` does. Immutable; safe to use from several threads.
class Tokenizer {
 public:
  /// Throws Error(model) naming the key and the rule when the vocabulary is not usable.
  explicit Tokenizer(const VocabularySource& source);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  size_t size() const { return vocabulary_->size(); }
  bool is_eog(TokenId id) const { return vocabulary_->is_eog(id); }

  /// The tokens of `text` alone: no begin or end token is added. `parse_control` says whether the characters
  /// of a control token are that token; tokens of type user-defined are recognised either way. Throws
  /// Error(data) when the text is larger than 1 GiB or a byte-level vocabulary has no token for one of its
  /// bytes.
  std::vector<TokenId> encode(std::string_view text, bool parse_control) const;

  /// The tokens of a text of mixed origin with the bytes of each. `runs` are ascending and disjoint; bytes
  /// outside them are ordinary. `cuts` are ascending offsets that no token crosses; between cuts and control
  /// tokens the text is tokenized as one string, whatever its origins.
  std::vector<TokenSpan> encode_runs(std::string_view text, std::span<const TextRun> runs,
                                     std::span<const size_t> cuts) const;

  /// Puts the begin token in front where the metadata asks for one and the text has none, and reduces several
  /// of them to one: a template and the metadata that both ask for it get it once.
  void with_bos(std::vector<TokenId>& tokens) const;
  /// The same; the added token stands for no byte.
  void with_bos(std::vector<TokenSpan>& tokens) const;

  /// The tokens of a plain text as a stream to train or score on: begin and end tokens as the metadata says.
  std::vector<TokenId> encode_document(std::string_view text) const;

  /// The text of `tokens`, as a StreamDecoder writes it, flushed.
  std::string decode(std::span<const TokenId> tokens) const;

 private:
  struct Fragment {
    size_t begin;
    size_t end;
    bool space_prefix;
  };
  void encode_fragment(std::string_view text, const Fragment& fragment, std::vector<TokenSpan>& tokens) const;

  std::unique_ptr<const Vocabulary> vocabulary_;
  AddedTokens added_;
  std::unique_ptr<const ByteLevelBpe> bpe_;
  std::unique_ptr<const SentencePieceBpe> spm_;
};

/// The ids of `spans`.
std::vector<TokenId> ids_of(std::span<const TokenSpan> spans);

}  // namespace retro::text
