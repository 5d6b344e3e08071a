#include "text/chat_probe.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"

namespace retro::text {

namespace {

using Json = nlohmann::ordered_json;

// Words that no template holds by itself.
constexpr std::string_view kWord = "qzprobeword";
constexpr std::string_view kTool = "qzprobetool";
constexpr std::string_view kAbout = "qzprobeabout";
constexpr std::string_view kKey = "qzprobekey";
constexpr std::string_view kArgument = "qzprobevalue";
constexpr std::string_view kResult = "qzproberesult";

std::optional<Rendered> attempt(const RenderProbe& render, const Json& messages, const Json* tools,
                                const MessageStyle& style, bool add_generation_prompt) {
  try {
    return render(messages, tools, style, add_generation_prompt);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool shows(const std::optional<Rendered>& rendered, std::string_view word) {
  return rendered && rendered->text.find(word) != std::string::npos;
}

Json sentinel_tools() {
  Json function;
  function["name"] = kTool;
  function["description"] = kAbout;
  function["parameters"] = {{"type", "object"},
                            {"properties", {{kKey, {{"type", "string"}, {"description", "a word"}}}}},
                            {"required", {kKey}}};
  return Json::array({{{"type", "function"}, {"function", function}}});
}

Json sentinel_messages(bool with_result) {
  // Some templates take only ids of nine letters and digits.
  constexpr std::string_view kId = "qzprobeid";
  Json call = {
      {"id", kId}, {"type", "function"}, {"function", {{"name", kTool}, {"arguments", {{kKey, kArgument}}}}}};
  Json messages =
      Json::array({{{"role", "user"}, {"content", kWord}},
                   {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}}});
  if (with_result) {
    messages.push_back({{"role", "tool"}, {"tool_call_id", kId}, {"name", kTool}, {"content", kResult}});
  }
  return messages;
}

/// The text of message 1 as its origins bound it: from its first byte to the next message's.
std::string_view turn_text(const Rendered& rendered) {
  size_t begin = std::string::npos;
  size_t end = rendered.text.size();
  for (const Run& run : rendered.runs) {
    if (run.origin.message == 0) begin = run.end;
    if (run.origin.message == 2) {
      end = run.begin;
      break;
    }
  }
  if (begin == std::string::npos || begin >= end) return {};
  return std::string_view(rendered.text).substr(begin, end - begin);
}

/// True where the call stands there as JSON values would: neither Python's repr of a dict, nor JSON inside a
/// JSON string, nor a missing content spelled out.
bool writes_well(const Rendered& rendered) {
  const std::string_view turn = turn_text(rendered);
  if (turn.find(kTool) == std::string_view::npos || turn.find(kKey) == std::string_view::npos ||
      turn.find(kArgument) == std::string_view::npos) {
    return false;
  }
  const std::string key(kKey);
  if (turn.find("{'" + key) != std::string_view::npos || turn.find("\\\"" + key) != std::string_view::npos) {
    return false;
  }
  for (const Run& run : rendered.runs) {
    if (run.origin == Origin(1, Field::content)) return false;
  }
  return true;
}

const ToolMarkup* find_markup(const Rendered& rendered) {
  const std::vector<ToolCall> declared = {
      {std::string(kTool), Json({{kKey, kArgument}}).dump()},
  };
  for (const ToolMarkup& markup : tool_markups()) {
    const ParsedTurn parsed = markup.parse(turn_text(rendered));
    if (parsed.problem.empty() && same_calls(parsed.calls, declared)) return &markup;
  }
  return nullptr;
}

/// Adds what the template does with tools and calls.
TemplateAbilities with_calls(const RenderProbe& render, TemplateAbilities abilities) {
  const Json plain = Json::array({{{"role", "user"}, {"content", kWord}}});
  const Json tools = sentinel_tools();
  abilities.declares_tools = shows(attempt(render, plain, &tools, abilities.style, true), kTool);
  if (!abilities.declares_tools) {
    const Json system = Json::array({{{"role", "system"}, {"content", kAbout}}, plain[0]});
    abilities.style.refuses_system = !shows(attempt(render, system, nullptr, abilities.style, true), kAbout);
    abilities.markup = &hermes_markup();
    return abilities;
  }
  for (const bool with_result : {true, false}) {
    const Json messages = sentinel_messages(with_result);
    for (const bool as_text : {false, true}) {
      for (const bool null_content : {false, true}) {
        MessageStyle style = abilities.style;
        style.arguments_as_text = as_text;
        style.null_beside_calls = null_content;
        const auto rendered = attempt(render, messages, &tools, style, false);
        if (!rendered || !writes_well(*rendered)) continue;
        abilities.style = style;
        abilities.markup = find_markup(*rendered);
        return abilities;
      }
    }
  }
  return abilities;
}

}  // namespace

TemplateAbilities probe_template(const RenderProbe& render) {
  TemplateAbilities abilities;
  const Json plain = Json::array({{{"role", "user"}, {"content", kWord}}});
  for (const bool left_out : {false, true}) {
    for (const bool parts : {false, true}) {
      MessageStyle style;
      style.content_parts = parts;
      style.tools_left_out = left_out;
      if (!shows(attempt(render, plain, nullptr, style, true), kWord)) continue;
      abilities.style = style;
      return with_calls(render, abilities);
    }
  }
  return with_calls(render, abilities);
}

}  // namespace retro::text
