// Strings of a rendering: the arena, the builder, str() and repr().
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "text/jinja_unicode.h"
#include "text/jinja_value.h"

namespace retro::text::jinja {

void Arena::step(uint64_t count) {
  steps_ += count;
  if (steps_ > limits_.steps) {
    fail(ErrorKind::model, "the template needs more than {} steps; does it loop without end?", limits_.steps);
  }
}

void Arena::charge(uint64_t count) {
  bytes_ += count;
  if (bytes_ > limits_.bytes || count > limits_.bytes) {
    fail(ErrorKind::model, "the template needs more than {} MiB of memory", limits_.bytes >> 20);
  }
}

const Str* Arena::refer(std::string_view bytes, Origin origin, bool markup) {
  charge(sizeof(Str));
  return new (memory_.allocate(sizeof(Str), alignof(Str))) Str{bytes, {}, origin, markup};
}

const Str* Arena::copy(std::string_view bytes, Origin origin, bool markup) {
  charge(bytes.size());
  step(bytes.size() / 64);
  if (bytes.empty()) return refer({}, origin, markup);
  char* own = static_cast<char*>(memory_.allocate(bytes.size(), 1));
  std::copy(bytes.begin(), bytes.end(), own);
  return refer({own, bytes.size()}, origin, markup);
}

const Str* Arena::adopt(const std::string& bytes, std::span<const Run> runs, bool markup) {
  const Str* string = copy(bytes, runs.empty() ? Origin() : runs.front().origin, markup);
  if (runs.size() > 1) {
    charge(runs.size_bytes());
    Run* own = static_cast<Run*>(memory_.allocate(runs.size_bytes(), alignof(Run)));
    std::uninitialized_copy(runs.begin(), runs.end(), own);
    const_cast<Str*>(string)->runs = {own, runs.size()};
  }
  return string;
}

const Str* Arena::slice(const Str& string, size_t begin, size_t end) {
  const std::string_view bytes = string.bytes.substr(begin, end - begin);
  if (string.runs.empty()) return refer(bytes, string.origin, string.markup);
  auto first = std::partition_point(string.runs.begin(), string.runs.end(),
                                    [&](const Run& run) { return run.end <= begin; });
  std::vector<Run> runs;
  for (; first != string.runs.end() && first->begin < end; ++first) {
    step();
    runs.push_back({std::max(first->begin, begin) - begin, std::min(first->end, end) - begin, first->origin});
  }
  if (runs.size() <= 1) return refer(bytes, runs.empty() ? Origin() : runs.front().origin, string.markup);
  charge(runs.size() * sizeof(Run));
  Run* own = static_cast<Run*>(memory_.allocate(runs.size() * sizeof(Run), alignof(Run)));
  std::uninitialized_copy(runs.begin(), runs.end(), own);
  const Str* part = refer(bytes, runs.front().origin, string.markup);
  const_cast<Str*>(part)->runs = {own, runs.size()};
  return part;
}

List* Arena::list(List::Type type) {
  charge(sizeof(List));
  lists_.emplace_back().type = type;
  return &lists_.back();
}

Dict* Arena::dict() {
  charge(sizeof(Dict));
  return &dicts_.emplace_back();
}

Object* Arena::adopt(std::unique_ptr<Object> object) {
  charge(sizeof(Object) + 64);
  return objects_.emplace_back(std::move(object)).get();
}

Value Arena::undefined(std::string_view name) {
  Value value;
  value.string = name.empty() ? nullptr : copy(name);
  return value;
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  arena_.charge(bytes.size());
  arena_.step(bytes.size() / 64);
  const size_t begin = text_.text.size();
  text_.text += bytes;
  if (!text_.runs.empty() && text_.runs.back().origin == origin) {
    text_.runs.back().end = text_.text.size();
  } else {
    arena_.charge(sizeof(Run));
    text_.runs.push_back({begin, text_.text.size(), origin});
  }
}

void TextBuilder::append(const Str& string) {
  append(string, 0, string.bytes.size());
}

void TextBuilder::append(const Str& string, size_t begin, size_t end) {
  if (string.runs.empty()) {
    append(string.bytes.substr(begin, end - begin), string.origin);
    return;
  }
  auto run = std::partition_point(string.runs.begin(), string.runs.end(),
                                  [&](const Run& each) { return each.end <= begin; });
  for (; run != string.runs.end() && run->begin < end; ++run) {
    arena_.step();
    const size_t from = std::max(run->begin, begin);
    append(string.bytes.substr(from, std::min(run->end, end) - from), run->origin);
  }
}

std::string format_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  char buffer[40];
  const auto scientific = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view digits(buffer, static_cast<size_t>(scientific.ptr - buffer));
  const size_t mark = digits.find('e');
  int exponent = 0;
  const bool plus = digits[mark + 1] == '+';
  std::from_chars(digits.data() + mark + (plus ? 2 : 1), digits.data() + digits.size(), exponent);
  // Python writes an exponent below 1e-4 and from 1e16.
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", digits.substr(0, mark), exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string text(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

namespace {

void append_string_repr(const Str& string, TextBuilder& out) {
  const std::string_view bytes = string.bytes;
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const char quote = has_single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
  const std::string quotes(1, quote);
  out.append(quotes, string.origin);
  size_t done = 0;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = code_point_at(bytes, at);
    std::string escape;
    if (point.value == '\n') {
      escape = "\\n";
    } else if (point.value == '\r') {
      escape = "\\r";
    } else if (point.value == '\t') {
      escape = "\\t";
    } else if (point.value == '\\' || point.value == quote) {
      escape = std::string("\\") + static_cast<char>(point.value);
    } else if (!is_printable(point.value)) {
      escape = point.value < 0x100     ? fmt::format("\\x{:02x}", point.value)
               : point.value < 0x10000 ? fmt::format("\\u{:04x}", point.value)
                                       : fmt::format("\\U{:08x}", point.value);
    }
    if (!escape.empty()) {
      out.append(string, done, at);
      TextBuilder one(out.arena());
      one.append(string, at, at + point.size);
      out.append(escape, one.finish()->origin);
      done = at + point.size;
    }
    at += point.size;
  }
  out.append(string, done, bytes.size());
  out.append(quotes, string.origin);
}

void append_items(const List& list, Origin origin, TextBuilder& out, int depth) {
  bool first = true;
  for (const Value& item : list.items) {
    if (!first) out.append(", ", origin);
    first = false;
    append_repr(item, out, depth + 1);
  }
}

void append_list_repr(const Value& value, TextBuilder& out, int depth) {
  const List& list = *value.list;
  const Origin origin = value.origin;
  switch (list.type) {
    case List::Type::list:
      out.append("[", origin);
      append_items(list, origin, out, depth);
      out.append("]", origin);
      return;
    case List::Type::tuple:
      out.append("(", origin);
      append_items(list, origin, out, depth);
      out.append(list.items.size() == 1 ? ",)" : ")", origin);
      return;
    case List::Type::dict_keys:
    case List::Type::dict_values:
    case List::Type::dict_items: {
      const bool keys = list.type == List::Type::dict_keys;
      out.append(keys                                   ? "dict_keys(["
                 : list.type == List::Type::dict_values ? "dict_values(["
                                                        : "dict_items([",
                 origin);
      append_items(list, origin, out, depth);
      out.append("])", origin);
      return;
    }
    case List::Type::range: {
      const int64_t begin = list.items.empty() ? 0 : list.items.front().integer;
      const int64_t step = list.items.size() < 2 ? 1 : list.items[1].integer - begin;
      const int64_t end = list.items.empty() ? 0 : list.items.back().integer + step;
      out.append(step == 1 ? fmt::format("range({}, {})", begin, end)
                           : fmt::format("range({}, {}, {})", begin, end, step));
      return;
    }
    case List::Type::generator:
      fail(ErrorKind::model, "a generator cannot be written; put it through the filter 'list' or 'join'");
  }
}

}  // namespace

void append_repr(const Value& value, TextBuilder& out, int depth) {
  if (depth > 200) fail(ErrorKind::model, "values are nested deeper than 200 levels");
  out.arena().step();
  switch (value.kind) {
    case Kind::undefined:
      out.append("Undefined");
      return;
    case Kind::none:
      out.append("None", value.origin);
      return;
    case Kind::boolean:
      out.append(value.boolean ? "True" : "False", value.origin);
      return;
    case Kind::integer:
      out.append(std::to_string(value.integer), value.origin);
      return;
    case Kind::real:
      out.append(format_real(value.real), value.origin);
      return;
    case Kind::string:
      if (value.string->markup) out.append("Markup(");
      append_string_repr(*value.string, out);
      if (value.string->markup) out.append(")");
      return;
    case Kind::list:
      append_list_repr(value, out, depth);
      return;
    case Kind::space:
    case Kind::dict: {
      if (value.is(Kind::space)) out.append("<Namespace ");
      out.append("{", value.origin);
      bool first = true;
      for (const auto& [key, item] : value.dict->items) {
        if (!first) out.append(", ", value.origin);
        first = false;
        append_repr(key, out, depth + 1);
        out.append(": ", value.origin);
        append_repr(item, out, depth + 1);
      }
      out.append("}", value.origin);
      if (value.is(Kind::space)) out.append(">");
      return;
    }
    case Kind::object:
      fail(ErrorKind::model, "a {} cannot be written as text", value.object->describe());
  }
}

void append_str(const Value& value, TextBuilder& out) {
  if (value.is(Kind::undefined)) return;
  if (value.is(Kind::string)) {
    out.append(*value.string);
  } else {
    append_repr(value, out);
  }
}

const Str* to_str(const Value& value, Arena& arena) {
  if (value.is(Kind::string)) return value.string;
  TextBuilder out(arena);
  append_str(value, out);
  return out.finish();
}

}  // namespace retro::text::jinja
