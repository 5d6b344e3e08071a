// Tokens to text as they come, in whole characters.
#pragma once

#include <optional>
#include <string>

#include "text/vocabulary.h"

namespace retro::text {

/// Turns tokens into well-formed UTF-8. A character whose bytes are spread over tokens is held back until its
/// last byte; bytes that can become no character are U+FFFD, one for each maximal ill-formed subpart. Control
/// and unknown tokens are shown as nothing. Where encoding puts a space in front of a text ("llama"
/// vocabularies with add_space_prefix: at the start and after added tokens), decoding takes it away again.
class StreamDecoder {
 public:
  /// `previous` is the token before the first one to come, if the text continues another; it decides whether
  /// a leading space is the text's own. `vocabulary` must outlive the decoder.
  explicit StreamDecoder(const Vocabulary& vocabulary, std::optional<TokenId> previous = std::nullopt);

  /// The characters that `token` completes. Throws Error(internal) when it is not in the vocabulary.
  std::string push(TokenId token);
  /// What is held back: U+FFFD for a character that was cut short, else nothing.
  std::string flush();

 private:
  const Vocabulary& vocabulary_;
  std::string held_;  // at most three bytes
  bool drop_space_;
};

}  // namespace retro::text
