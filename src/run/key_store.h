// How a checked value gets into the document: by the path of members that a row of the key table names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "run/document.h"
#include "run/keys.h"

namespace retro::run {

inline void assign(bool& field, const KeyValue& value) {
  field = value.boolean;
}
inline void assign(int64_t& field, const KeyValue& value) {
  field = value.integer;
}
inline void assign(uint64_t& field, const KeyValue& value) {
  field = static_cast<uint64_t>(value.integer);
}
inline void assign(int& field, const KeyValue& value) {
  field = static_cast<int>(value.integer);
}
inline void assign(double& field, const KeyValue& value) {
  field = value.real;
}
inline void assign(std::string& field, const KeyValue& value) {
  field = value.text;
}
inline void assign(std::filesystem::path& field, const KeyValue& value) {
  field = value.text;
}
inline void assign(std::vector<std::string>& field, const KeyValue& value) {
  field = value.names;
}

template <typename Enum>
requires std::is_enum_v<Enum>
void assign(Enum& field, const KeyValue& value) {
  field = static_cast<Enum>(value.choice);
}

template <typename Value>
void assign(std::optional<Value>& field, const KeyValue& value) {
  assign(field.emplace(), value);
}

template <typename Part>
Part& part(Part& section) {
  return section;
}
template <typename Part>
Part& part(std::optional<Part>& section) {
  return section ? *section : section.emplace();
}

/// Stores into `owner.*kFirst.*kRest…`; a section that may be absent is there from its first key on.
template <auto kFirst, auto... kRest, typename Owner>
void store_at(Owner& owner, const KeyValue& value) {
  if constexpr (sizeof...(kRest) == 0) {
    assign(owner.*kFirst, value);
  } else {
    store_at<kRest...>(part(owner.*kFirst), value);
  }
}

template <auto... kPath>
void put(Document& document, const KeyValue& value) {
  store_at<kPath...>(document, value);
}

inline void discard(Document&, const KeyValue&) {}

inline constexpr double kMany = 1e12;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Bounds kNotNegative{.low = 0};
inline constexpr Bounds kCount{.low = 1, .high = kMany};
// A longer context than any model has; keeps every product of sizes far from overflow.
inline constexpr double kLongestContext = 1 << 24;

}  // namespace retro::run
