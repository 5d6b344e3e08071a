// Tool calls as a model writes them: markups that parse back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace retro::text {

/// One call: `arguments` is the text of a JSON object.
struct ToolCall {
  std::string name;
  std::string arguments;
};

/// An answer taken apart. `problem` says why the markup does not parse; empty where it does.
struct ParsedTurn {
  std::string content;
  std::vector<ToolCall> calls;
  std::string problem;
};

/// A way of writing calls. `parse` never throws; text without the markup's marks has no calls and no problem.
struct ToolMarkup {
  std::string_view name;
  ParsedTurn (*parse)(std::string_view turn);
};

/// All known markups, the plainest last.
std::span<const ToolMarkup> tool_markups();
/// `<tool_call>{"name": …, "arguments": {…}}</tool_call>` (Nous Hermes, Qwen).
const ToolMarkup& hermes_markup();

/// True where names are equal and arguments are equal as JSON (the order of keys does not count).
bool same_calls(std::span<const ToolCall> left, std::span<const ToolCall> right);

}  // namespace retro::text
