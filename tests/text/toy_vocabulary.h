// Small vocabularies that tests write themselves.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/vocabulary.h"

namespace retro::text {

/// Owns the strings of a VocabularySource.
class ToyVocabulary {
 public:
  ToyVocabulary() = default;
  ToyVocabulary(ToyVocabulary&&) = default;

  /// The 256 byte tokens (ids 0 to 255), then what each of `merges` makes (where new), in order.
  static ToyVocabulary byte_level(const std::vector<std::string>& merges) {
    ToyVocabulary toy;
    toy.source.model = "gpt2";
    toy.source.pre = "gpt-2";
    for (int byte = 0; byte < 256; ++byte) {
      toy.add(std::string(byte_character(static_cast<uint8_t>(byte))), TokenType::normal);
    }
    for (const auto& merge : merges) {
      toy.source.merges.push_back(toy.keep(merge));
      std::string joined = merge;
      joined.erase(joined.find(' ', 1), 1);
      bool known = false;
      for (const auto token : toy.source.tokens) known |= token == joined;
      if (!known) toy.add(joined, TokenType::normal);
    }
    return toy;
  }

  /// <unk>, <s>, </s> (ids 0 to 2) and the bytes <0x00> to <0xFF> (ids 3 to 258).
  static ToyVocabulary sentencepiece() {
    ToyVocabulary toy;
    toy.source.model = "llama";
    toy.add("<unk>", TokenType::unknown);
    toy.add("<s>", TokenType::control);
    toy.add("</s>", TokenType::control);
    for (int byte = 0; byte < 256; ++byte) toy.add(fmt::format("<0x{:02X}>", byte), TokenType::byte);
    toy.source.add_space_prefix = false;
    return toy;
  }

  /// Adds a token; returns its id.
  TokenId add(const std::string& text, TokenType type, float score = 0.0F) {
    source.tokens.push_back(keep(text));
    source.types.push_back(static_cast<int32_t>(type));
    source.scores.push_back(score);
    return static_cast<TokenId>(source.tokens.size()) - 1;
  }

  std::string_view keep(const std::string& text) { return strings_.emplace_back(text); }

  VocabularySource source;

 private:
  std::deque<std::string> strings_;
};

}  // namespace retro::text
