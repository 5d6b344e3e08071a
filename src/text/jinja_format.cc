#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

constexpr int kMaxWidth = 10000;

/// A conversion of either formatter.
struct Spec {
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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int read_number(std::string_view text, size_t& at) {
  int number = 0;
  while (at < text.size() && is_digit(text[at])) {
    number = number * 10 + (text[at++] - '0');
    if (number > kMaxWidth) fail(ErrorKind::model, "a format is wider than {}", kMaxWidth);
  }
  return number;
}

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
std::string magnitude(const Value& value, const Spec& spec) {
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

const Str* aligned(const Str& text, const Spec& spec, char fallback, Arena& arena) {
  const char align = spec.align != '\0' ? spec.align : fallback;
  return pad(text, spec.width, spec.fill, align == '<' ? 0 : align == '^' ? 2 : 1, arena);
}

const Str* format_number(const Value& value, const Spec& spec, Arena& arena) {
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

const Str* format_text(const Str& text, const Spec& spec, Arena& arena) {
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

/// Hands out the values of a `%` format.
class PercentArguments {
 public:
  explicit PercentArguments(const Value& arguments) : arguments_(arguments) {
    tuple_ = arguments.is(Kind::list) && arguments.list->type == List::Type::tuple;
  }

  const Value& next() {
    if (!tuple_) {
      if (at_++ > 0) fail(ErrorKind::model, "not enough values for the format");
      return arguments_;
    }
    if (at_ >= arguments_.list->items.size()) fail(ErrorKind::model, "not enough values for the format");
    return arguments_.list->items[at_++];
  }

  const Value& named(std::string_view name) {
    named_ = true;
    const Value* found = arguments_.is(Kind::dict) ? arguments_.dict->find(name) : nullptr;
    if (found == nullptr) fail(ErrorKind::model, "the format has no value '{}'", name);
    return *found;
  }

  void finish() const {
    const bool left = tuple_
                          ? at_ < arguments_.list->items.size()
                          : at_ == 0 && !named_ && !arguments_.is(Kind::dict) && !arguments_.is(Kind::list);
    if (left) fail(ErrorKind::model, "not all values are used by the format");
  }

 private:
  const Value& arguments_;
  bool tuple_ = false;
  bool named_ = false;
  size_t at_ = 0;
};

void read_percent_spec(std::string_view text, size_t& at, PercentArguments& arguments, Spec& spec) {
  for (; at < text.size(); ++at) {
    if (text[at] == '-') {
      spec.align = '<';
    } else if (text[at] == '+' || text[at] == ' ') {
      spec.sign = text[at];
    } else if (text[at] == '#') {
      spec.alternate = true;
    } else if (text[at] == '0') {
      spec.zero = true;
    } else {
      break;
    }
  }
  const auto number = [&] {
    if (at >= text.size() || text[at] != '*') return read_number(text, at);
    ++at;
    return static_cast<int>(std::clamp<int64_t>(to_integer(arguments.next(), "a format"), 0, kMaxWidth));
  };
  spec.width = number();
  if (at < text.size() && text[at] == '.') {
    ++at;
    spec.precision = number();
  }
  while (at < text.size() && (text[at] == 'l' || text[at] == 'h' || text[at] == 'L')) ++at;
  if (at >= text.size()) fail(ErrorKind::model, "a format ends in the middle of a conversion");
  spec.type = text[at++];
  if (spec.align == '<') spec.zero = false;
}

/// A value's text inside a format; a format that is marked safe escapes it.
const Str* value_text(const Value& value, bool markup, Arena& arena) {
  const Str* text = to_str(value, arena);
  return markup ? escape_html(*text, arena) : text;
}

void format_one_percent(const Value& value, Spec spec, bool markup, TextBuilder& out) {
  Arena& arena = out.arena();
  if (spec.align == '\0') spec.align = '>';
  switch (spec.type) {
    case 's':
      out.append(*format_text(*value_text(value, markup, arena), spec, arena));
      return;
    case 'r':
    case 'a':
      out.append(*format_text(*value_text(Value::of(repr(value, arena)), markup, arena), spec, arena));
      return;
    case 'c': {
      if (value.is(Kind::string)) {
        out.append(*format_text(*value.string, spec, arena));
        return;
      }
      const int64_t code = to_integer(value, "a format");
      if (code < 0 || code > 0x10ffff) fail(ErrorKind::model, "{} is no character", code);
      std::string character;
      append_utf8(static_cast<int32_t>(code), character);
      out.append(*format_text(*arena.copy(character, value.origin), spec, arena));
      return;
    }
    default:
      break;
  }
  if (!value.is_number()) type_error("a number's format", value);
  if (std::string_view("diu").find(spec.type) != std::string_view::npos && value.is(Kind::real)) {
    if (!(std::fabs(value.real) < 9e18)) fail(ErrorKind::model, "a number is beyond 64 bits");
    Value whole = Value::of(static_cast<int64_t>(value.real));
    whole.origin = value.origin;
    out.append(*format_number(whole, spec, arena));
    return;
  }
  out.append(*format_number(value, spec, arena));
}

}  // namespace

const Str* format_percent(const Str& format, const Value& values, Arena& arena) {
  TextBuilder out(arena);
  PercentArguments arguments(values);
  const std::string_view text = format.bytes;
  size_t done = 0;
  while (true) {
    size_t at = text.find('%', done);
    if (at == std::string_view::npos) break;
    arena.step();
    out.append(format, done, at);
    ++at;
    if (at < text.size() && text[at] == '%') {
      out.append(format, at, at + 1);
      done = at + 1;
      continue;
    }
    const Value* named = nullptr;
    if (at < text.size() && text[at] == '(') {
      const size_t close = text.find(')', at);
      if (close == std::string_view::npos) fail(ErrorKind::model, "a format's name is never closed");
      named = &arguments.named(text.substr(at + 1, close - at - 1));
      at = close + 1;
    }
    Spec spec;
    read_percent_spec(text, at, arguments, spec);
    format_one_percent(named != nullptr ? *named : arguments.next(), spec, format.markup, out);
    done = at;
  }
  out.append(format, done, text.size());
  arguments.finish();
  return out.finish(format.markup);
}

namespace {

Spec read_brace_spec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const size_t first = text.empty() ? 0 : code_point_at(text, 0).size;
  if (first < text.size() && is_align(text[first])) {
    spec.fill = std::string(text.substr(0, first));
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  const auto accept = [&](char c) { return at < text.size() && text[at] == c ? (++at, true) : false; };
  if (accept('+')) {
    spec.sign = '+';
  } else if (accept(' ')) {
    spec.sign = ' ';
  } else {
    accept('-');
  }
  spec.alternate = accept('#');
  spec.zero = accept('0') && spec.align == '\0';
  spec.width = read_number(text, at);
  spec.comma = accept(',');
  if (accept('.')) spec.precision = read_number(text, at);
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) fail(ErrorKind::model, "the format '{}' is not understood", text);
  return spec;
}

/// `{name.field[0]!r:spec}`, taken apart.
class BraceFormatter {
 public:
  BraceFormatter(const Arguments& arguments, bool markup, Interpreter& interpreter)
      : arguments_(arguments), markup_(markup), interpreter_(interpreter) {}

  void field(std::string_view text, TextBuilder& out) {
    Arena& arena = out.arena();
    const size_t colon = text.find(':');
    const std::string_view spec_text = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    std::string_view name = text.substr(0, colon);
    char conversion = '\0';
    if (const size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != name.size()) fail(ErrorKind::model, "the format '{}' is not understood", text);
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = lookup(name);
    if (conversion == 'r' || conversion == 'a') value = Value::of(repr(value, arena));
    if (conversion == 's') value = Value::of(to_str(value, arena));
    if (spec_text.empty()) {
      out.append(*value_text(value, markup_, arena));
      return;
    }
    if (spec_text.find('{') != std::string_view::npos) {
      fail(ErrorKind::model, "the format '{}' nests another, which is not supported", text);
    }
    const Spec spec = read_brace_spec(spec_text);
    if (value.is_number() && !(value.is(Kind::boolean) && spec.type == '\0')) {
      out.append(*format_number(value, spec, arena));
    } else {
      if (spec.type != '\0' && spec.type != 's') type_error("a number's format", value);
      out.append(*format_text(*value_text(value, markup_, arena), spec, arena));
    }
  }

 private:
  Value lookup(std::string_view name) {
    size_t at = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, at);
    Value value = argument(first);
    while (at < name.size()) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        value = interpreter_.attribute(value, name.substr(at + 1, end - at - 1));
        at = end;
      } else {
        const size_t close = name.find(']', at);
        if (close == std::string_view::npos) fail(ErrorKind::model, "a format's '[' is never closed");
        const std::string_view key = name.substr(at + 1, close - at - 1);
        size_t digits = 0;
        const int index = read_number(key, digits);
        value =
            interpreter_.item(value, digits == key.size() && !key.empty() ? Value::of(int64_t{index})
                                                                          : interpreter_.arena().string(key));
        at = close + 1;
      }
    }
    require_defined(value);
    return value;
  }

  Value argument(std::string_view name) {
    size_t index = 0;
    if (name.empty()) {
      index = next_++;
    } else if (is_digit(name[0])) {
      size_t at = 0;
      index = static_cast<size_t>(read_number(name, at));
    } else {
      for (const auto& [key, value] : arguments_.named) {
        if (key == name) return value;
      }
      fail(ErrorKind::model, "the format has no value '{}'", name);
    }
    if (index >= arguments_.positional.size()) fail(ErrorKind::model, "not enough values for the format");
    return arguments_.positional[index];
  }

  const Arguments& arguments_;
  bool markup_;
  Interpreter& interpreter_;
  size_t next_ = 0;
};

}  // namespace

const Str* format_braces(const Str& format, const Arguments& arguments, Interpreter& interpreter) {
  TextBuilder out(interpreter.arena());
  BraceFormatter formatter(arguments, format.markup, interpreter);
  const std::string_view text = format.bytes;
  size_t done = 0;
  while (true) {
    const size_t at = text.find_first_of("{}", done);
    if (at == std::string_view::npos) break;
    interpreter.arena().step();
    out.append(format, done, at);
    if (at + 1 < text.size() && text[at + 1] == text[at]) {
      out.append(format, at, at + 1);
      done = at + 2;
      continue;
    }
    const size_t close = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (close == std::string_view::npos) fail(ErrorKind::model, "a single '{}' in a format", text[at]);
    formatter.field(text.substr(at + 1, close - at - 1), out);
    done = close + 1;
  }
  out.append(format, done, text.size());
  return out.finish(format.markup);
}

}  // namespace retro::text::jinja
