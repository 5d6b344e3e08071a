#include "text/jinja_format.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_format_spec.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

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
    // Python takes whatever has subscripts for a mapping, whose values need not be used.
    const bool subscripts = arguments_.is(Kind::dict) || arguments_.is(Kind::undefined) ||
                            (arguments_.is(Kind::list) && arguments_.list->type <= List::Type::range);
    const bool left = tuple_ ? at_ < arguments_.list->items.size() : at_ == 0 && !named_ && !subscripts;
    if (left) fail(ErrorKind::model, "not all values are used by the format");
  }

 private:
  const Value& arguments_;
  bool tuple_ = false;
  bool named_ = false;
  size_t at_ = 0;
};

void read_percent_spec(std::string_view text, size_t& at, PercentArguments& arguments, FormatSpec& spec) {
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
    return static_cast<int>(
        std::clamp<int64_t>(to_integer(arguments.next(), "a format"), 0, kMaxFormatWidth));
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

void format_one_percent(const Value& value, FormatSpec spec, bool markup, TextBuilder& out) {
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
    FormatSpec spec;
    read_percent_spec(text, at, arguments, spec);
    format_one_percent(named != nullptr ? *named : arguments.next(), spec, format.markup, out);
    done = at;
  }
  out.append(format, done, text.size());
  arguments.finish();
  return out.finish(format.markup);
}

namespace {

FormatSpec read_brace_spec(std::string_view text) {
  FormatSpec spec;
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

bool is_integer_type(char type) {
  return type == '\0' || std::string_view("dbcoxXn").find(type) != std::string_view::npos;
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
    const FormatSpec spec = read_brace_spec(spec_text);
    if (value.is_number()) {
      if (spec.precision >= 0 && !value.is(Kind::real) && is_integer_type(spec.type)) {
        fail(ErrorKind::model, "the format '{}' gives an integer a precision", text);
      }
      out.append(*format_number(value, spec, arena));
    } else {
      if (!value.is(Kind::string)) type_error("a format of text or a number", value);
      if (spec.type != '\0' && spec.type != 's') type_error("a number's format", value);
      if (spec.comma) type_error("a format with ','", value);
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
    return value;
  }

  Value argument(std::string_view name) {
    size_t index = 0;
    if (name.empty()) {
      index = next_++;
    } else if (is_format_digit(name[0])) {
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
