// Messages in the one shape that templates are given.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
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
  bool refuses_system = false;     ///< the template fails on a system message
  bool tools_as_text = false;      ///< see make_messages_as_text; for a template that declares no tools
};

/// The text of a message's content: a string, text parts joined, or missing. Throws Error(data).
std::string content_text(const nlohmann::ordered_json& message, size_t index);
/// The declared calls of a message; arguments are read from text where they are given so. Throws Error(data).
std::vector<ToolCall> declared_calls(const nlohmann::ordered_json& message, size_t index);

/// One message as a template sees it, with origins.
jinja::Value make_message(const nlohmann::ordered_json& message, size_t index, const MessageStyle& style,
                          jinja::Arena& arena);
/// A message of a role of the template's own and a content.
jinja::Value make_plain_message(std::string_view role, const jinja::Str& content, const MessageStyle& style,
                                jinja::Arena& arena);
/// The content of a message with its origin, "ERROR: " in front where `is_error`.
const jinja::Str& content_string(const nlohmann::ordered_json& message, size_t index, jinja::Arena& arena);
/// True where the conversation declares tools, calls one or holds a result.
bool uses_tools(const nlohmann::ordered_json& messages, const nlohmann::ordered_json* tools);

/// Messages [0, count) as a template sees them, with origins.
jinja::Value make_messages(const nlohmann::ordered_json& messages, size_t count, const MessageStyle& style,
                           jinja::Arena& arena);
/// The same for a template that knows no tools: the catalogue stands in the system prompt (in the first user
/// turn where the template takes none), calls are `<tool_call>{"name": …, "arguments": {…}}</tool_call>`
/// behind the content, results are user turns of `<tool_response>…</tool_response>`, one turn for results in
/// a row.
jinja::Value make_messages_as_text(const nlohmann::ordered_json& messages, size_t count,
                                   const nlohmann::ordered_json* tools, const MessageStyle& style,
                                   jinja::Arena& arena);
/// The tools in OpenAI's shape; none where there are none. Throws Error(data).
jinja::Value make_tools(const nlohmann::ordered_json* tools, jinja::Arena& arena);

}  // namespace retro::text
