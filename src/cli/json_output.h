// `--json FILE`: the result of a command as one JSON object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace retro::cli {

/// Whether results for people may go to standard output: not where `--json -` has it.
inline bool prints_results(const std::optional<std::string>& json) {
  return json != "-";
}

/// Writes the object to the file, or to standard output for "-"; nothing without a name.
void write_json(const std::optional<std::string>& file, const nlohmann::ordered_json& value);

}  // namespace retro::cli
