// A TOML text as a plain tree with positions; the one place that knows the TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/document.h"

namespace retro::run {

struct TomlEntry;

struct TomlValue {
  enum class Kind { boolean, integer, real, string, array, table, date };
  Kind kind = Kind::table;
  Position at;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0.0;
  std::string string;
  std::vector<TomlValue> items;
  std::vector<TomlEntry> entries;  ///< of a table, keys in order of their bytes
};

struct TomlEntry {
  std::string key;
  Position at;
  TomlValue value;
};

/// Parses TOML 1.0 (a byte-order mark is skipped). `file` names the text in errors. Throws Error(config) with
/// the place for text that is not UTF-8, not TOML, over 1 MiB, or nested deeper than a document can need.
TomlValue parse_toml(std::string_view text, const std::string& file);

/// A value as TOML would spell it, cut to a readable length.
std::string spell(const TomlValue& value);

/// "a string", "a whole number", … for messages.
std::string_view kind_name(TomlValue::Kind kind);

/// A string in TOML's double quotes.
std::string quote(std::string_view text);

}  // namespace retro::run
