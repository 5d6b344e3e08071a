// JSON text of template values, as Python's json.dumps writes it.
#pragma once

#include <string>

#include "text/jinja_value.h"

namespace retro::text::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool indented = false;
  std::string indent;
};

/// json.dumps(value), with origins. Throws Error(model) where Python raises TypeError.
const Str* to_json(const Value& value, const JsonStyle& style, Arena& arena);

}  // namespace retro::text::jinja
