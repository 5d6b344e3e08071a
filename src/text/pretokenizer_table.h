// The pre-tokenizers that GGUF files name, one row each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace retro::text {

/// One step of a pre-tokenizer: cuts a piece into the matches of a pattern and what lies between them, or
/// cuts it by a function where no pattern does so in linear time.
struct CutRule {
  const char* pattern = nullptr;  ///< PCRE2, with UTF and Unicode properties; never matches nothing
  /// Appends to `ends` where the parts of `piece` end, ascending, piece.size() last, each plus `begin`.
  void (*function)(std::string_view piece, size_t begin, std::vector<size_t>& ends) = nullptr;

  constexpr CutRule() = default;
  constexpr CutRule(const char* matches) : pattern(matches) {}
  constexpr CutRule(void (*cut)(std::string_view, size_t, std::vector<size_t>&)) : function(cut) {}
  bool operator==(const CutRule&) const = default;
  constexpr bool empty() const { return pattern == nullptr && function == nullptr; }
};

/// How a vocabulary's name for its pre-tokenizer (`tokenizer.ggml.pre`) is to be read.
struct PretokenizerRules {
  std::string_view name;
  uint8_t traits;                ///< a sum of the k… below
  std::array<CutRule, 6> rules;  ///< applied in order, the rest are empty
};

/// A piece that is a token's text becomes it without asking the merges.
inline constexpr uint8_t kIgnoresMerges = 1;
/// A begin token is put in front unless add_bos_token says otherwise.
inline constexpr uint8_t kBegins = 2;
/// Merges join characters, in which U+2581 is a space, and bytes outside the vocabulary are tokens <0x00> to
/// <0xFF>, as in SentencePiece; otherwise they join bytes, each written as a character.
inline constexpr uint8_t kMarksSpaces = 4;
/// A piece of line ends that is a token's text becomes it without asking the merges.
inline constexpr uint8_t kWholeLineEnds = 8;
/// A begin token is put in front whatever add_bos_token says: files of these models say it wrongly.
inline constexpr uint8_t kAlwaysBegins = 16;

/// The rules of `name`; an empty name is "default". nullptr when they are not known.
const PretokenizerRules* find_pretokenizer(std::string_view name);

/// The known names, comma-separated.
std::string known_pretokenizers();

}  // namespace retro::text
