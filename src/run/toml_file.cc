#include "run/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cstddef>
#include <utility>

#include "base/error.h"

namespace retro::run {

namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxKeyParts = 32;
constexpr size_t kShownLength = 60;

// The library builds a table for every part of a dotted key and frees them by recursion, so that a line of a
// million dots would end in a stack overflow. Strings and comments are stepped over as the grammar has them.
class KeyDepthCheck {
 public:
  explicit KeyDepthCheck(std::string_view text) : text_(text) {}

  /// The line of a key with too many parts, or 0.
  int line_of_deep_key() {
    int dots = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        continue;
      }
      if (c == '\n') ++line_;
      if (c == '.') {
        if (++dots >= kMaxKeyParts) return line_;
      } else if (std::string_view("\n=,{}[]").find(c) != std::string_view::npos) {
        dots = 0;
      }
      ++at_;
    }
    return 0;
  }

 private:
  void skip_string(char quote_mark) {
    const std::string triple(3, quote_mark);
    const bool multi_line = text_.substr(at_, 3) == triple;
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        if (!multi_line) return;
        ++line_;
      }
      if (c == '\\' && quote_mark == '"') {
        at_ += text_.substr(at_ + 1, 1) == "\n" ? 1 : 2;
        continue;
      }
      if (multi_line ? text_.substr(at_, 3) == triple : c == quote_mark) {
        at_ += multi_line ? 3 : 1;
        // One or two quotation marks may stand right before the closing three.
        while (multi_line && at_ < text_.size() && text_[at_] == quote_mark) ++at_;
        return;
      }
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

Position position(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

TomlValue convert(const toml::node& node) {
  using Kind = TomlValue::Kind;
  TomlValue value;
  value.at = position(node.source());
  if (const auto* table = node.as_table()) {
    value.kind = Kind::table;
    for (const auto& [key, child] : *table) {
      value.entries.push_back({std::string(key.str()), position(key.source()), convert(child)});
    }
  } else if (const auto* array = node.as_array()) {
    value.kind = Kind::array;
    for (const auto& child : *array) value.items.push_back(convert(child));
  } else if (const auto* text = node.as_string()) {
    value.kind = Kind::string;
    value.string = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = Kind::integer;
    value.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.kind = Kind::real;
    value.real = real->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = Kind::boolean;
    value.boolean = boolean->get();
  } else {
    value.kind = Kind::date;
  }
  return value;
}

std::string shortened(std::string text) {
  if (text.size() <= kShownLength) return text;
  size_t end = kShownLength;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

std::string spell_array(const TomlValue& value) {
  std::string text = "[";
  for (const TomlValue& item : value.items) {
    if (text.size() > 1) text += ", ";
    if (text.size() > kShownLength) return text + "…]";
    text += spell(item);
  }
  return text + "]";
}

}  // namespace

TomlValue parse_toml(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes) {
    fail(ErrorKind::config, "{}: has {} bytes; a run document has at most {}. Is it the right file?", file,
         text.size(), kMaxBytes);
  }
  if (const int line = KeyDepthCheck(text).line_of_deep_key(); line > 0) {
    fail(ErrorKind::config, "{}:{}: a key of more than {} parts; no key of a run document has so many", file,
         line, kMaxKeyParts);
  }
  try {
    return convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    const Position at = position(error.source());
    fail(ErrorKind::config, "{}:{}:{}: not valid TOML: {}", file, at.line, at.column, error.description());
  }
}

std::string spell(const TomlValue& value) {
  switch (value.kind) {
    case TomlValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case TomlValue::Kind::integer:
      return fmt::format("{}", value.integer);
    case TomlValue::Kind::real: {
      std::string text = fmt::format("{}", value.real);
      return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
    }
    case TomlValue::Kind::string:
      return shortened(quote(value.string));
    case TomlValue::Kind::array:
      return spell_array(value);
    case TomlValue::Kind::table:
      return "{…}";
    case TomlValue::Kind::date:
      return "a date or time";
  }
  return {};
}

std::string_view kind_name(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::boolean:
      return "true or false";
    case TomlValue::Kind::integer:
      return "a whole number";
    case TomlValue::Kind::real:
      return "a number";
    case TomlValue::Kind::string:
      return "a string";
    case TomlValue::Kind::array:
      return "a list";
    case TomlValue::Kind::table:
      return "a table";
    case TomlValue::Kind::date:
      return "a date or time";
  }
  return {};
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04X}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace retro::run
