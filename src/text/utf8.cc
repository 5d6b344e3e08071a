#include "text/utf8.h"

#include <cstring>

namespace retro::text {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct LeadRule {
  uint8_t length;      // 0: no lead byte
  uint8_t second_min;  // what the byte after the lead may be (rules out overlong forms and surrogates)
  uint8_t second_max;
};

constexpr LeadRule lead_rule(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

/// Bytes of plain ASCII from `at` on, a multiple of eight.
size_t ascii_stretch(std::string_view text, size_t at) {
  size_t end = at;
  while (end + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + end, 8);
    if ((word & 0x8080808080808080U) != 0) break;
    end += 8;
  }
  return end - at;
}

}  // namespace

Utf8Step utf8_step(std::string_view text, size_t at) {
  using Kind = Utf8Step::Kind;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const LeadRule rule = lead_rule(byte(0));
  if (rule.length == 1) return {Kind::character, 1, byte(0)};
  if (rule.length == 0) return {Kind::ill_formed, 1, kReplacement};
  char32_t character = byte(0) & (0x7FU >> rule.length);
  for (uint8_t i = 1; i < rule.length; ++i) {
    if (at + i == text.size()) return {Kind::cut, i, kReplacement};
    const uint8_t low = i == 1 ? rule.second_min : 0x80;
    const uint8_t high = i == 1 ? rule.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Kind::ill_formed, i, kReplacement};
    character = (character << 6) | (byte(i) & 0x3FU);
  }
  return {Kind::character, rule.length, character};
}

bool utf8_valid(std::string_view text) {
  for (size_t at = ascii_stretch(text, 0); at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Step::Kind::character) return false;
    at += step.length;
    at += ascii_stretch(text, at);
  }
  return true;
}

MendedText mend_utf8(std::string_view text) {
  MendedText mended;
  mended.text.reserve(text.size());
  mended.origin.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind == Utf8Step::Kind::character) {
      for (size_t i = 0; i < step.length; ++i) mended.origin.push_back(at + i);
      mended.text.append(text, at, step.length);
    } else {
      mended.text += kReplacementCharacter;
      mended.origin.resize(mended.text.size(), at);
    }
    at += step.length;
  }
  mended.origin.push_back(text.size());
  return mended;
}

}  // namespace retro::text
