// Messages in the one shape that templates are given.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "text/jinja_value.h"
#include "text/tool_calls.h"

namespace retro::text {

/// What a template wants, found by trying it on sentinels.
struct MessageStyle {
  bool content_parts = false;      ///< content as a list of parts; text otherwise
  bool arguments_as_text = false;  ///< a call's arguments as JSON text; an object otherwise
  bool null_beside_calls = false;  ///< missing content beside calls is null; empty text otherwise
  bool tools_left_out = false;     ///< without tools the variable is undefined; None otherwise
};

/// The text of a message's content: a string, text parts joined, or missing. Throws Error(data).
std::string content_text(const nlohmann::ordered_json& message, size_t index);
/// The declared calls of a message; arguments are read from text where they are given so. Throws Error(data).
std::vector<ToolCall> declared_calls(const nlohmann::ordered_json& message, size_t index);

/// Messages [0, count) as a template sees them, with origins.
jinja::Value make_messages(const nlohmann::ordered_json& messages, size_t count, const MessageStyle& style,
                           jinja::Arena& arena);
/// The tools in OpenAI's shape; none where there are none. Throws Error(data).
jinja::Value make_tools(const nlohmann::ordered_json* tools, jinja::Arena& arena);

}  // namespace retro::text
