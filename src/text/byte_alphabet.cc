#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace retro::text {

namespace {

struct Alphabet {
  struct Letter {
    std::array<char, 2> utf8;
    uint8_t size;
  };
  std::array<Letter, 256> letters;
  std::array<int16_t, 0x100 + 68> bytes;  // by code point; -1 outside the alphabet

  constexpr Alphabet() : letters(), bytes() {
    for (auto& byte : bytes) byte = -1;
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      const uint32_t code = printable ? byte : next++;
      bytes[code] = static_cast<int16_t>(byte);
      if (code < 0x80) {
        letters[byte] = {{static_cast<char>(code), 0}, 1};
      } else {
        letters[byte] = {{static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))}, 2};
      }
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::string_view byte_character(uint8_t byte) {
  const auto& letter = kAlphabet.letters[byte];
  return {letter.utf8.data(), letter.size};
}

void append_byte_characters(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) out += byte_character(static_cast<uint8_t>(byte));
}

std::optional<std::string> bytes_of_characters(std::string_view characters) {
  std::string bytes;
  bytes.reserve(characters.size());
  for (size_t at = 0; at < characters.size();) {
    const Utf8Step step = utf8_step(characters, at);
    if (step.kind != Utf8Step::Kind::character || step.character >= kAlphabet.bytes.size()) return {};
    const int16_t byte = kAlphabet.bytes[step.character];
    if (byte < 0) return {};
    bytes += static_cast<char>(byte);
    at += step.length;
  }
  return bytes;
}

}  // namespace retro::text
