#include "text/jinja_format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

bool is_format_digit(char c) {
  return c >= '0' && c <= '9';
}

int read_number(std::string_view text, size_t& at) {
  int number = 0;
  while (at < text.size() && is_format_digit(text[at])) {
    number = number * 10 + (text[at++] - '0');
    if (number > kMaxFormatWidth) fail(ErrorKind::model, "a format is wider than {}", kMaxFormatWidth);
  }
  return number;
}

namespace {

std::string group_thousands(const std::string& digits) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(end);
}

/// The magnitude of a number, without its sign.
std::string magnitude(const Value& value, const FormatSpec& spec) {
  if (value.is(Kind::real) || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos) {
    double real = std::fabs(to_real(value, "a format"));
    if (spec.type == '\0') return format_real(real);
    const bool percent = spec.type == '%';
    if (percent) real *= 100;
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    const char type = percent ? 'f' : spec.type;
    std::string text;
    if (type == 'f' || type == 'F') {
      text = fmt::format("{:.{}f}", real, precision);
    } else if (type == 'e' || type == 'E') {
      text = fmt::format("{:.{}e}", real, precision);
    } else if (type == 'g' || type == 'G') {
      text = fmt::format("{:.{}g}", real, precision);
    } else {
      fail(ErrorKind::model, "a float has no format '{}'", type);
    }
    if (type == 'E' || type == 'G')
      std::transform(text.begin(), text.end(), text.begin(),
                     [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return percent ? text + "%" : text;
  }
  const int64_t integer = to_integer(value, "a format");
  const uint64_t size = integer < 0 ? 0 - static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + fmt::format("{:x}", size);
    case 'X':
      return (spec.alternate ? "0X" : "") + fmt::format("{:X}", size);
    case 'o':
      return (spec.alternate ? "0o" : "") + fmt::format("{:o}", size);
    case 'b':
      return (spec.alternate ? "0b" : "") + fmt::format("{:b}", size);
    case '\0':
    case 'd':
    case 'i':
    case 'u':
    case 'n':
      return std::to_string(size);
    default:
      fail(ErrorKind::model, "an integer has no format '{}'", spec.type);
  }
}

const Str* aligned(const Str& text, const FormatSpec& spec, char fallback, Arena& arena) {
  const char align = spec.align != '\0' ? spec.align : fallback;
  return pad(text, spec.width, spec.fill, align == '<' ? 0 : align == '^' ? 2 : 1, arena);
}

}  // namespace

const Str* format_number(const Value& value, const FormatSpec& spec, Arena& arena) {
  const bool negative = value.is(Kind::real) ? std::signbit(value.real) : to_integer(value, "a format") < 0;
  std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  std::string digits = magnitude(value, spec);
  if (spec.comma) digits = group_thousands(digits);
  const size_t size = sign.size() + digits.size();
  if ((spec.zero || spec.align == '=') && size < static_cast<size_t>(spec.width)) {
    digits.insert(0, static_cast<size_t>(spec.width) - size, spec.zero ? '0' : spec.fill[0]);
  }
  return aligned(*arena.copy(sign + digits, value.origin), spec, '>', arena);
}

const Str* format_text(const Str& text, const FormatSpec& spec, Arena& arena) {
  const Str* cut = &text;
  if (spec.precision >= 0) {
    cut = arena.slice(text, 0, offset_of_character(text.bytes, static_cast<size_t>(spec.precision)));
  }
  return aligned(*cut, spec, '<', arena);
}

const Str* repr(const Value& value, Arena& arena) {
  TextBuilder out(arena);
  append_repr(value, out);
  return out.finish();
}

const Str* value_text(const Value& value, bool markup, Arena& arena) {
  const Str* text = to_str(value, arena);
  return markup ? escape_html(*text, arena) : text;
}

}  // namespace retro::text::jinja
