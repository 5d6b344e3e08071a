// JSON from outside, checked before anything is built from it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace retro::data {

/// Deeper values are refused: no record needs them, and code that walks a value may recurse.
inline constexpr int kMaxJsonDepth = 100;

/// Parses one JSON value, keeping the order of keys. Throws Error(data) that says what is wrong and in which
/// column (bytes, from 1) for text that is not UTF-8 or not JSON, nested too deeply, or with one key twice in
/// an object.
nlohmann::ordered_json parse_json(std::string_view text);

}  // namespace retro::data
