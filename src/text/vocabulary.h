// A model's tokens: texts, bytes, types and the ids with a meaning of their own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/token_texts.h"

namespace retro::text {

/// What a GGUF file says about its vocabulary, under the keys `tokenizer.ggml.*`. The views must outlive the
/// construction of a Vocabulary or Tokenizer, which copy what they keep.
struct VocabularySource {
  std::string_view model;                ///< "gpt2", "gemma4" (merges by rank) or "llama" (merges by score)
  std::string_view pre;                  ///< the pre-tokenizer of a "gpt2" model; empty means "default"
  std::vector<std::string_view> tokens;  ///< texts by id
  std::vector<float> scores;             ///< one a token; needed by "llama"
  std::vector<int32_t> types;            ///< one a token, or none: all are normal
  std::vector<std::string_view> merges;  ///< "left right", best first; needed by "gpt2" and "gemma4"
  std::optional<uint32_t> bos;           ///< bos_token_id; "llama" defaults to 1 if that is a control token
  std::optional<uint32_t> eos;           ///< eos_token_id; "llama" defaults to 2 likewise
  std::optional<uint32_t> eot;           ///< eot_token_id: ends a turn
  std::optional<uint32_t> eom;           ///< eom_token_id: ends a message
  std::optional<uint32_t> unk;           ///< unknown_token_id; "llama" defaults to 0 likewise
  std::optional<uint32_t> pad;           ///< padding_token_id
  std::vector<uint32_t> more_eog;        ///< further ids that end an answer
  std::optional<bool> add_bos;  ///< add_bos_token; "llama" and pre-tokenizers that begin default to true
  std::optional<bool> add_eos;  ///< add_eos_token
  std::optional<bool> add_space_prefix;  ///< add_space_prefix; "llama" defaults to true
};

/// Numbered as in `tokenizer.ggml.token_type`.
enum class TokenType : uint8_t {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

enum class VocabularyKind : uint8_t {
  byte_level_bpe,  ///< merges by rank; each byte is written as a character
  character_bpe,   ///< merges by rank; characters, U+2581 for a space, bytes as tokens <0x00> to <0xFF>
  sentencepiece,   ///< the same, merged by score
};

/// The name of the pre-tokenizer that `source` asks for.
std::string_view pretokenizer_name(const VocabularySource& source);

/// A checked vocabulary. Tokens whose text is a well-known turn end ("<|im_end|>") are control tokens
/// whatever the file says, so that a message that contains the characters cannot end its own turn.
class Vocabulary {
 public:
  /// Throws Error(model) naming the key and the rule when the parts do not fit together.
  explicit Vocabulary(const VocabularySource& source);

  size_t size() const { return texts_.size(); }
  bool contains(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < size(); }
  VocabularyKind kind() const { return kind_; }

  /// The token as the file spells it.
  std::string_view text(TokenId id) const { return texts_[id]; }
  /// The bytes it stands for; not necessarily whole characters.
  std::string_view bytes(TokenId id) const { return bytes_[static_cast<size_t>(id)]; }
  TokenType type(TokenId id) const { return types_[static_cast<size_t>(id)]; }
  float score(TokenId id) const { return scores_.empty() ? 0.0F : scores_[static_cast<size_t>(id)]; }
  size_t longest_text() const { return texts_.longest(); }
  /// The id of the token spelled `text`, kNoToken when there is none.
  TokenId find(std::string_view text) const { return texts_.find(text); }
  /// The same among the tokens that ordinary text can become: neither control, unknown nor byte tokens.
  TokenId find_ordinary(std::string_view text) const;
  bool is_ordinary(TokenId id) const;
  /// Control and unknown tokens: recognised in a template's own text only, and shown as nothing.
  bool is_control(TokenId id) const {
    return type(id) == TokenType::control || type(id) == TokenType::unknown;
  }
  /// The token of one byte: The character that stands for it in a byte-level vocabulary, "<0x0A>" in others.
  /// kNoToken when the vocabulary lacks it.
  TokenId byte_token(uint8_t byte) const { return byte_tokens_[byte]; }

  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  /// The end of a turn: the file's id, else the first well-known one there is.
  std::optional<TokenId> eot() const { return eot_; }
  std::optional<TokenId> unk() const { return unk_; }
  std::optional<TokenId> pad() const { return pad_; }
  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }
  bool add_space_prefix() const { return add_space_prefix_; }

  /// Whether the token ends an answer: the file's eos, eot and eom, and the names that llama.cpp knows (of
  /// which "</s>" counts only where the file calls it a control token).
  bool is_eog(TokenId id) const { return contains(id) && eog_[static_cast<size_t>(id)]; }
  /// The ids for which is_eog holds, ascending.
  std::vector<TokenId> eog_ids() const;

 private:
  void read_types(const VocabularySource& source);
  void read_ids(const VocabularySource& source);
  void read_well_known_names(const VocabularySource& source);
  void read_bytes();
  void read_byte_tokens();

  VocabularyKind kind_;
  TokenTexts texts_;
  PackedStrings bytes_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::vector<bool> eog_;
  std::array<TokenId, 256> byte_tokens_;
  std::optional<TokenId> bos_, eos_, eot_, unk_, pad_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool add_space_prefix_ = false;
};

}  // namespace retro::text
