#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace retro::text {

CodePoint code_point_at(std::string_view text, size_t position) {
  const auto byte = static_cast<uint8_t>(text[position]);
  if (byte < 0x80) return {byte, 1};
  utf8proc_int32_t value = 0;
  const utf8proc_ssize_t size =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position,
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(4, text.size() - position)), &value);
  if (size <= 0) return {0xfffd, 1};
  return {value, static_cast<size_t>(size)};
}

size_t previous_character(std::string_view text, size_t position) {
  size_t begin = position - 1;
  while (begin > 0 && position - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xc0) == 0x80) --begin;
  return code_point_at(text, begin).size == position - begin ? begin : position - 1;
}

bool is_ascii(std::string_view text) {
  uint8_t any = 0;
  for (const char c : text) any |= static_cast<uint8_t>(c);
  return any < 0x80;
}

size_t count_characters(std::string_view text) {
  if (is_ascii(text)) return text.size();
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).size) ++count;
  return count;
}

size_t offset_of_character(std::string_view text, size_t index) {
  size_t at = 0;
  while (at < text.size() && index > 0) {
    at += code_point_at(text, at).size;
    --index;
  }
  return at;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == 0xfffd && point.size == 1) return at;
    at += point.size;
  }
  return std::string_view::npos;
}

void append_utf8(int32_t code_point, std::string& out) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
}

bool is_space(int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_line_break(int32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(int32_t c) {
  if (c == ' ') return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_letter(int32_t c) {
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_alphanumeric(int32_t c) {
  const auto category = utf8proc_category(c);
  return is_letter(c) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

bool is_cased_upper(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) ||
         (c >= 0x24b6 && c <= 0x24cf);
}

bool is_cased_lower(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba ||
         (c >= 0x2170 && c <= 0x217f) || (c >= 0x24d0 && c <= 0x24e9);
}

namespace {

/// The characters of common scripts whose upper case is several characters (Unicode's SpecialCasing).
struct SpecialCase {
  int32_t lower;
  const char* upper;
  const char* title;
};
constexpr std::array kSpecialCases = {
    SpecialCase{0xdf, "SS", "Ss"},
    SpecialCase{0x149, "ʼN", "ʼN"},
    SpecialCase{0x1f0, "J̌", "J̌"},
    SpecialCase{0x587, "ԵՒ", "Եւ"},
    SpecialCase{0xfb00, "FF", "Ff"},
    SpecialCase{0xfb01, "FI", "Fi"},
    SpecialCase{0xfb02, "FL", "Fl"},
    SpecialCase{0xfb03, "FFI", "Ffi"},
    SpecialCase{0xfb04, "FFL", "Ffl"},
    SpecialCase{0xfb05, "ST", "St"},
    SpecialCase{0xfb06, "ST", "St"},
    SpecialCase{0x390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    SpecialCase{0x3b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
};

const SpecialCase* special_case(int32_t c) {
  for (const SpecialCase& special : kSpecialCases) {
    if (special.lower == c) return &special;
  }
  return nullptr;
}

}  // namespace

void append_upper(int32_t c, std::string& out) {
  if (const SpecialCase* special = c < 0x80 ? nullptr : special_case(c)) {
    out += special->upper;
    return;
  }
  append_utf8(utf8proc_toupper(c), out);
}

void append_title(int32_t c, std::string& out) {
  if (const SpecialCase* special = c < 0x80 ? nullptr : special_case(c)) {
    out += special->title;
    return;
  }
  append_utf8(utf8proc_totitle(c), out);
}

void append_lower(int32_t c, std::string& out) {
  if (c == 0x130) {
    out += "i̇";
    return;
  }
  append_utf8(utf8proc_tolower(c), out);
}

size_t skip_space(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const CodePoint point = code_point_at(text, begin);
    if (!is_space(point.value)) break;
    begin += point.size;
  }
  return begin;
}

size_t skip_space_back(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t begin = previous_character(text, end);
    if (!is_space(code_point_at(text, begin).value)) break;
    end = begin;
  }
  return end;
}

}  // namespace retro::text
