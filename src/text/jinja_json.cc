#include "text/jinja_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

class Writer {
 public:
  Writer(const JsonStyle& style, Arena& arena) : style_(style), out_(arena) {}

  const Str* finish() { return out_.finish(); }

  void write(const Value& value, int depth) {
    if (depth > 200) fail(ErrorKind::model, "values are nested deeper than 200 levels");
    out_.arena().step();
    switch (value.kind) {
      case Kind::none:
        out_.append("null", value.origin);
        return;
      case Kind::boolean:
        out_.append(value.boolean ? "true" : "false", value.origin);
        return;
      case Kind::integer:
        out_.append(std::to_string(value.integer), value.origin);
        return;
      case Kind::real:
        out_.append(number(value.real), value.origin);
        return;
      case Kind::string:
        string(*value.string);
        return;
      case Kind::list:
        if (value.list->type > List::Type::tuple) break;
        list(value, depth);
        return;
      case Kind::dict:
        dict(value, depth);
        return;
      default:
        break;
    }
    fail(ErrorKind::model, "a value of type '{}' has no JSON form", type_name(value));
  }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return format_real(value);
  }

  void string(const Str& text) {
    if (text.runs.empty()) {
      out_.append("\"", text.origin);
      escape(text.bytes, text.origin);
      out_.append("\"", text.origin);
      return;
    }
    out_.append("\"", text.runs.front().origin);
    for (const Run& run : text.runs) escape(text.bytes.substr(run.begin, run.end - run.begin), run.origin);
    out_.append("\"", text.runs.back().origin);
  }

  void escape(std::string_view bytes, Origin origin) {
    size_t done = 0;
    for (size_t at = 0; at < bytes.size();) {
      const CodePoint point = code_point_at(bytes, at);
      const std::string code = escaped(point.value);
      if (!code.empty()) {
        out_.append(bytes.substr(done, at - done), origin);
        out_.append(code, origin);
        done = at + point.size;
      }
      at += point.size;
    }
    out_.append(bytes.substr(done), origin);
  }

  /// The escape of a character; empty where it stands for itself.
  std::string escaped(int32_t c) const {
    constexpr std::string_view kPlain = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    if (c < 0x80) {
      const size_t at = kPlain.find(static_cast<char>(c));
      if (at != std::string_view::npos) return std::string("\\") + kLetters[at];
      if (c >= 0x20 && (c < 0x7f || !style_.ensure_ascii)) return {};
    } else if (!style_.ensure_ascii) {
      return {};
    }
    if (c < 0x10000) return fmt::format("\\u{:04x}", c);
    const int32_t rest = c - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }

  void newline(int depth, Origin origin) {
    if (!style_.indented) return;
    out_.append("\n", origin);
    for (int i = 0; i < depth; ++i) out_.append(style_.indent, origin);
  }

  void list(const Value& value, int depth) {
    out_.append("[", value.origin);
    bool first = true;
    for (const Value& item : value.list->items) {
      if (!first) out_.append(style_.item_separator, value.origin);
      first = false;
      newline(depth + 1, value.origin);
      write(item, depth + 1);
    }
    if (!first) newline(depth, value.origin);
    out_.append("]", value.origin);
  }

  void key(const Value& name) {
    if (name.is(Kind::string)) {
      string(*name.string);
    } else if (name.is(Kind::none) || name.is_number()) {
      out_.append("\"", name.origin);
      write(name, 0);
      out_.append("\"", name.origin);
    } else {
      fail(ErrorKind::model, "a key of type '{}' has no JSON form", type_name(name));
    }
  }

  void dict(const Value& value, int depth) {
    auto items = value.dict->items;
    out_.arena().charge(items.size() * sizeof(items[0]));
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return compare(a.first, b.first) < 0; });
    }
    out_.append("{", value.origin);
    bool first = true;
    for (const auto& [name, item] : items) {
      if (!first) out_.append(style_.item_separator, value.origin);
      first = false;
      newline(depth + 1, value.origin);
      key(name);
      out_.append(style_.key_separator, value.origin);
      write(item, depth + 1);
    }
    if (!first) newline(depth, value.origin);
    out_.append("}", value.origin);
  }

  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

const Str* to_json(const Value& value, const JsonStyle& style, Arena& arena) {
  Writer writer(style, arena);
  writer.write(value, 0);
  return writer.finish();
}

}  // namespace retro::text::jinja
