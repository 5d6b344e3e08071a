// Fields of one message, checked and brought into the normal form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace retro::data {

/// A value for a message, cut to a readable length.
std::string shown(const nlohmann::ordered_json& value);

/// The message with text content, and calls as `{id, type, function}`; `calls` counts those of the record
/// that had no id. Throws Error(data) without naming the message.
nlohmann::ordered_json normal_message(const nlohmann::ordered_json& message, size_t& calls);

}  // namespace retro::data
