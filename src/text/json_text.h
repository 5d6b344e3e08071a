// JSON from outside, checked while it is built.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace retro::text {

/// Deeper values are refused: nobody needs them, and code that walks a value may recurse.
inline constexpr int kMaxJsonDepth = 100;

enum class DuplicateKeys { refused, last_wins };

/// Parses one JSON value in time linear in its length, keeping the order of keys. Throws Error(data) that
/// says what is wrong and in which column (bytes, from 1) for text that is not UTF-8 or not JSON, nested too
/// deeply, or with one key twice in an object where that is refused.
nlohmann::ordered_json parse_json(std::string_view text, DuplicateKeys duplicates = DuplicateKeys::refused);

/// The same for text that may be no JSON: discarded where parse_json would throw, and the last of equal keys.
nlohmann::ordered_json try_parse_json(std::string_view text);

/// The value of `key`, null where it is absent or JSON's null.
const nlohmann::ordered_json* member(const nlohmann::ordered_json& object, const char* key);

}  // namespace retro::text
