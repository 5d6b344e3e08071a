// One conversion of Python's string formatters.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace retro::text::jinja {

constexpr int kMaxFormatWidth = 10000;

/// Fill, alignment, sign, width, precision and type of a conversion.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  bool comma = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

/// The digits of `text` from `at` on, as a number; throws Error(model) above kMaxFormatWidth.
int read_number(std::string_view text, size_t& at);
bool is_format_digit(char c);

const Str* format_number(const Value& value, const FormatSpec& spec, Arena& arena);
const Str* format_text(const Str& text, const FormatSpec& spec, Arena& arena);
/// repr(value).
const Str* repr(const Value& value, Arena& arena);
/// A value's text inside a format; a format that is marked safe escapes it.
const Str* value_text(const Value& value, bool markup, Arena& arena);

}  // namespace retro::text::jinja
