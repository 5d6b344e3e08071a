// Filters of one value: text and numbers.
#include "text/jinja_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "text/jinja_format.h"
#include "text/jinja_json.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

/// The text that string filters work on: str(value).
const Str& text_of(const Value& subject, Interpreter& interpreter) {
  return *to_str(subject, interpreter.arena());
}

Value filter_trim(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("trim", arguments, {"chars"});
  const Str* characters = bound.set(0) ? &to_string(bound.at(0), "trim") : nullptr;
  return Value::of(strip(text_of(subject, interpreter), characters, true, true, interpreter.arena()));
}

template <Case kCase>
Value filter_case(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("upper", arguments, {});
  return Value::of(change_case(text_of(subject, interpreter), kCase, interpreter.arena()));
}

Value filter_title(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("title", arguments, {});
  return Value::of(title_words(text_of(subject, interpreter), interpreter.arena()));
}

Value filter_string(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("string", arguments, {});
  return Value::of(&text_of(subject, interpreter));
}

Value filter_safe(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("safe", arguments, {});
  TextBuilder out(interpreter.arena());
  append_str(subject, out);
  return Value::of(out.finish(true));
}

Value filter_escape(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("escape", arguments, {});
  return Value::of(escape_html(text_of(subject, interpreter), interpreter.arena()));
}

Value filter_forceescape(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("forceescape", arguments, {});
  Str plain = text_of(subject, interpreter);
  plain.markup = false;
  return Value::of(escape_html(plain, interpreter.arena()));
}

Value filter_replace(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("replace", arguments, {"old", "new", "count"});
  const int64_t limit = bound.set(2) ? to_integer(bound.at(2), "replace") : -1;
  Str text = text_of(subject, interpreter);
  text.markup = false;
  return Value::of(replace(text, text_of(bound.at(0), interpreter), text_of(bound.at(1), interpreter), limit,
                           interpreter.arena()));
}

Value filter_indent(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  Arena& arena = interpreter.arena();
  const Str* indention = nullptr;
  if (bound.has(0) && bound.at(0).is(Kind::string)) {
    indention = bound.at(0).string;
  } else {
    indention = pad(*arena.refer(""), bound.integer(0, 4), " ", 0, arena);
  }
  return Value::of(indent(to_string(subject, "'indent'"), *indention, bound.flag(1), bound.flag(2), arena));
}

Value filter_center(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("center", arguments, {"width"});
  return Value::of(pad(text_of(subject, interpreter), bound.integer(0, 80), " ", 2, interpreter.arena()));
}

Value filter_wordcount(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("wordcount", arguments, {});
  const std::string_view text = text_of(subject, interpreter).bytes;
  interpreter.arena().step(text.size() / 16);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const bool word = point.value == '_' || is_alphanumeric(point.value);
    if (word && !inside) ++words;
    inside = word;
    at += point.size;
  }
  return Value::of(words);
}

Value filter_truncate(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"});
  Arena& arena = interpreter.arena();
  const int64_t limit = bound.integer(0, 255);
  const Str& end = bound.has(2) ? to_string(bound.at(2), "truncate") : *arena.refer("...");
  const int64_t leeway = bound.set(3) ? to_integer(bound.at(3), "truncate") : 5;
  const auto end_size = static_cast<int64_t>(count_characters(end.bytes));
  if (limit < end_size || leeway < 0)
    fail(ErrorKind::model, "'truncate' needs a length of at least {}", end_size);
  if (length(subject) <= limit + leeway) return subject;
  const Str& text = to_string(subject, "'truncate'");
  size_t cut = offset_of_character(text.bytes, static_cast<size_t>(limit - end_size));
  if (!bound.flag(1)) {
    const size_t space = text.bytes.substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  return Value::of(concatenate(*arena.slice(text, 0, cut), end, arena));
}

Value filter_urlencode(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("urlencode", arguments, {});
  if (subject.is(Kind::dict) || subject.is(Kind::list)) fail(ErrorKind::model, "'urlencode' takes text here");
  const Str& text = text_of(subject, interpreter);
  TextBuilder out(interpreter.arena());
  for (size_t at = 0; at < text.bytes.size(); ++at) {
    const char c = text.bytes[at];
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    interpreter.arena().step();
    if (plain) {
      out.append(text, at, at + 1);
    } else {
      out.append(fmt::format("%{:02X}", static_cast<uint8_t>(c)), text.origin);
    }
  }
  return Value::of(out.finish());
}

Value filter_format(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Arena& arena = interpreter.arena();
  const Str& format = text_of(subject, interpreter);
  if (!arguments.named.empty()) {
    if (!arguments.positional.empty())
      fail(ErrorKind::model, "'format' takes positional or named values, not both");
    Dict* named = arena.dict();
    for (const auto& [name, value] : arguments.named) named->set(arena.string(name), value);
    return Value::of(format_percent(format, Value::of(named), arena));
  }
  List* values = arena.list(List::Type::tuple);
  values->items = arguments.positional;
  return Value::of(format_percent(format, Value::of(values), arena));
}

Value filter_default(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  if (!subject.is(Kind::undefined) && (!bound.flag(1) || truthy(subject))) return subject;
  return bound.has(0) ? bound.at(0) : interpreter.arena().string("");
}

/// int(text, base) as Python reads it: spaces around, a sign, single underscores, a prefix that fits the
/// base.
std::optional<int64_t> parse_integer(std::string_view text, int base) {
  text = text.substr(0, skip_space_back(text, text.size()));
  text.remove_prefix(skip_space(text, 0));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const char mark = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked != 0 && (base == marked || base == 0)) {
    text.remove_prefix(2);
    base = marked;
  }
  if (base == 0) base = 10;
  std::string digits(text);
  if (digits.empty() || digits.front() == '_' || digits.back() == '_' ||
      digits.find("__") != std::string::npos) {
    return std::nullopt;
  }
  std::erase(digits, '_');
  int64_t value = 0;
  if (negative) digits.insert(0, "-");
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range)
    fail(ErrorKind::model, "the integer {} is beyond 64 bits", digits);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      (negative && digits.starts_with("--"))) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  text = text.substr(0, skip_space_back(text, text.size()));
  text.remove_prefix(skip_space(text, 0));
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with("+") || text.starts_with("+-")) return std::nullopt;
  std::string digits(text);
  std::erase(digits, '_');
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> truncated(double value) {
  if (!(std::fabs(value) < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Value filter_int(const Value& subject, const Arguments& arguments, Interpreter&) {
  const Bound bound("int", arguments, {"default", "base"});
  require_defined(subject);
  std::optional<int64_t> value;
  if (subject.is(Kind::string)) {
    const int64_t base = bound.integer(1, 10);
    if (base != 0 && (base < 2 || base > 36)) fail(ErrorKind::model, "'int' takes a base from 2 to 36");
    value = parse_integer(subject.string->bytes, static_cast<int>(base));
    if (!value) {
      if (const auto real = parse_real(subject.string->bytes)) value = truncated(*real);
    }
  } else if (subject.is(Kind::real)) {
    value = truncated(subject.real);
  } else if (subject.is_number()) {
    value = to_integer(subject, "int");
  }
  if (!value) return bound.has(0) ? bound.at(0) : Value::of(int64_t{0});
  Value result = Value::of(*value);
  result.origin = subject.origin;
  return result;
}

Value filter_float(const Value& subject, const Arguments& arguments, Interpreter&) {
  const Bound bound("float", arguments, {"default"});
  require_defined(subject);
  std::optional<double> value;
  if (subject.is(Kind::string)) value = parse_real(subject.string->bytes);
  if (subject.is_number()) value = to_real(subject, "float");
  if (!value) return bound.has(0) ? bound.at(0) : Value::of(0.0);
  Value result = Value::of(*value);
  result.origin = subject.origin;
  return result;
}

Value filter_abs(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("abs", arguments, {});
  if (subject.is(Kind::real)) return Value::of(std::fabs(subject.real));
  const int64_t value = to_integer(subject, "'abs'");
  return value < 0 ? negate(Value::of(value)) : Value::of(value);
}

Value filter_round(const Value& subject, const Arguments& arguments, Interpreter&) {
  const Bound bound("round", arguments, {"precision", "method"});
  const int64_t precision = std::clamp<int64_t>(bound.integer(0, 0), -300, 300);
  const std::string_view method = bound.has(1) ? to_string(bound.at(1), "round").bytes : "common";
  if (method == "common") {
    if (!subject.is(Kind::real)) {
      const int64_t value = to_integer(subject, "'round'");
      if (precision >= 0) return Value::of(value);
      fail(ErrorKind::model, "'round' of an integer takes no negative precision here");
    }
    if (precision < 0) {
      const double scale = std::pow(10.0, static_cast<double>(-precision));
      return Value::of(std::nearbyint(subject.real / scale) * scale);
    }
    return Value::of(*parse_real(fmt::format("{:.{}f}", subject.real, precision)));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double value = to_real(subject, "'round'") * scale;
  if (method == "ceil") return Value::of(std::ceil(value) / scale);
  if (method == "floor") return Value::of(std::floor(value) / scale);
  fail(ErrorKind::model, "'round' takes the methods common, ceil and floor, not '{}'", method);
}

Value filter_tojson(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound.flag(0);
  style.sort_keys = bound.flag(3);
  Arena& arena = interpreter.arena();
  if (bound.set(1)) {
    style.indented = true;
    style.item_separator = ",";
    if (bound.at(1).is(Kind::string)) {
      style.indent = std::string(bound.at(1).string->bytes);
    } else {
      const int64_t width = to_integer(bound.at(1), "tojson");
      if (width > 1000) fail(ErrorKind::model, "'tojson' takes an indent of at most 1000");
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (bound.set(2)) {
    const List* separators = iterate(bound.at(2), arena);
    if (separators->items.size() != 2) fail(ErrorKind::model, "'tojson' takes two separators");
    style.item_separator = std::string(to_string(separators->items[0], "tojson").bytes);
    style.key_separator = std::string(to_string(separators->items[1], "tojson").bytes);
  }
  require_defined(subject);
  return Value::of(to_json(subject, style, arena));
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr std::array kFilters = {
    NamedFilter{"trim", filter_trim},
    NamedFilter{"upper", filter_case<Case::upper>},
    NamedFilter{"lower", filter_case<Case::lower>},
    NamedFilter{"capitalize", filter_case<Case::capitalize>},
    NamedFilter{"title", filter_title},
    NamedFilter{"string", filter_string},
    NamedFilter{"safe", filter_safe},
    NamedFilter{"e", filter_escape},
    NamedFilter{"escape", filter_escape},
    NamedFilter{"forceescape", filter_forceescape},
    NamedFilter{"replace", filter_replace},
    NamedFilter{"indent", filter_indent},
    NamedFilter{"center", filter_center},
    NamedFilter{"wordcount", filter_wordcount},
    NamedFilter{"truncate", filter_truncate},
    NamedFilter{"urlencode", filter_urlencode},
    NamedFilter{"format", filter_format},
    NamedFilter{"default", filter_default},
    NamedFilter{"d", filter_default},
    NamedFilter{"int", filter_int},
    NamedFilter{"float", filter_float},
    NamedFilter{"abs", filter_abs},
    NamedFilter{"round", filter_round},
    NamedFilter{"tojson", filter_tojson},
};

}  // namespace

Filter find_scalar_filter(std::string_view name) {
  for (const NamedFilter& each : kFilters) {
    if (each.name == name) return each.filter;
  }
  return nullptr;
}

Filter find_filter(std::string_view name) {
  Filter found = find_scalar_filter(name);
  if (found == nullptr) found = find_sequence_filter(name);
  return found != nullptr ? found : find_ordering_filter(name);
}

Value Interpreter::filter(std::string_view name, const Value& subject, const Arguments& arguments) {
  const Filter found = find_filter(name);
  if (found == nullptr) fail(ErrorKind::model, "there is no filter '{}'", name);
  return found(subject, arguments, *this);
}

bool Interpreter::test(std::string_view name, const Value& subject, const Arguments& arguments) {
  const Test found = find_test(name);
  if (found == nullptr) fail(ErrorKind::model, "there is no test '{}'", name);
  return found(subject, arguments, *this);
}

}  // namespace retro::text::jinja
