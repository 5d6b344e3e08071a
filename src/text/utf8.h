// UTF-8: one step of decoding, validity, and replacement of what is ill-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retro::text {

/// What stands at one position of a byte string.
struct Utf8Step {
  enum class Kind : uint8_t {
    character,   ///< a whole, well-formed character
    ill_formed,  ///< bytes that no continuation can mend (a maximal subpart, Unicode 3.9 table 3-8)
    cut,         ///< the text ends within a character that is well-formed so far
  };
  Kind kind;
  uint8_t length;      ///< bytes, at least 1
  char32_t character;  ///< U+FFFD unless `kind` is character
};

/// The step at `text[at]`; `at` must be inside the text.
Utf8Step utf8_step(std::string_view text, size_t at);

/// Bytes of the character that `lead` opens; 1 for a byte that opens none.
constexpr size_t utf8_length(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Whether every character of `text` is whole and well-formed.
bool utf8_valid(std::string_view text);

/// U+FFFD, which stands for what cannot be read.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// Text with U+FFFD for each ill-formed maximal subpart, and where its bytes came from: byte i of `text`
/// stems from `origin[i]` of the source; `origin` has one entry more, the source's end.
struct MendedText {
  std::string text;
  std::vector<size_t> origin;
};
MendedText mend_utf8(std::string_view text);

}  // namespace retro::text
