#include "text/tool_calls.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "text/json_text.h"

namespace retro::text {

namespace {

using Json = nlohmann::ordered_json;

/// Reads `{"name": …, KEY: {…}}` into a call; the reason where it is something else.
std::string read_call(const Json& json, std::string_view key, std::vector<ToolCall>& calls) {
  if (!json.is_object()) return "a call is no JSON object";
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return "a call has no name";
  const auto arguments = json.find(std::string(key));
  if (arguments == json.end())
    return fmt::format("the call to '{}' has no '{}'", name->get<std::string>(), key);
  Json object = *arguments;
  if (object.is_string()) object = try_parse_json(object.get_ref<const std::string&>());
  if (!object.is_object())
    return fmt::format("the {} of '{}' are no JSON object", key, name->get<std::string>());
  calls.push_back({name->get<std::string>(), object.dump()});
  return {};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

ParsedTurn parse_hermes(std::string_view turn) {
  constexpr std::string_view kOpen = "<tool_call>";
  constexpr std::string_view kClose = "</tool_call>";
  ParsedTurn parsed;
  size_t at = 0;
  while (parsed.problem.empty()) {
    const size_t open = turn.find(kOpen, at);
    if (open == std::string_view::npos) break;
    parsed.content += turn.substr(at, open - at);
    const size_t begin = open + kOpen.size();
    // The closing mark may also stand inside a JSON string: the first one that leaves valid JSON closes.
    size_t close = turn.find(kClose, begin);
    if (close == std::string_view::npos) {
      parsed.problem = "<tool_call> is never closed";
      return parsed;
    }
    Json json = try_parse_json(turn.substr(begin, close - begin));
    for (size_t next = turn.find(kClose, close + 1); json.is_discarded() && next != std::string_view::npos;
         next = turn.find(kClose, next + 1)) {
      Json longer = try_parse_json(turn.substr(begin, next - begin));
      if (longer.is_discarded()) continue;
      json = std::move(longer);
      close = next;
    }
    parsed.problem = json.is_discarded() ? "the text between <tool_call> and </tool_call> is no JSON"
                                         : read_call(json, "arguments", parsed.calls);
    at = close + kClose.size();
  }
  parsed.content += turn.substr(at);
  parsed.content = std::string(trimmed(parsed.content));
  return parsed;
}

constexpr std::array kMarkups = {ToolMarkup{"hermes", parse_hermes}};

}  // namespace

std::span<const ToolMarkup> tool_markups() {
  return kMarkups;
}

const ToolMarkup& hermes_markup() {
  return kMarkups[0];
}

bool same_calls(std::span<const ToolCall> left, std::span<const ToolCall> right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i].name != right[i].name) return false;
    // Objects of this type compare without regard to the order of keys.
    const auto a = nlohmann::json::parse(left[i].arguments, nullptr, false);
    const auto b = nlohmann::json::parse(right[i].arguments, nullptr, false);
    if (a.is_discarded() || b.is_discarded() || a != b) return false;
  }
  return true;
}

}  // namespace retro::text
