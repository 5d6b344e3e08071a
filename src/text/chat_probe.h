// What a chat template can do, found by rendering sentinels.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "text/chat_messages.h"
#include "text/tool_calls.h"

namespace retro::text {

struct TemplateAbilities {
  MessageStyle style;
  bool declares_tools = false;
  /// What calls parse back from: the template's own way, Hermes where it declares no tools (so that calls are
  /// text), null where it writes no calls or in a markup that we do not know.
  const ToolMarkup* markup = nullptr;
};

/// Renders messages [0, count) and tools in a style; throws Error where the template fails.
using RenderProbe =
    std::function<Rendered(const nlohmann::ordered_json& messages, const nlohmann::ordered_json* tools,
                           const MessageStyle& style, bool add_generation_prompt)>;

/// Tries content as text and as parts, a tool's declaration, and a call in each spelling of its arguments and
/// of missing content. A template that fails on all of them has no ability.
TemplateAbilities probe_template(const RenderProbe& render);

}  // namespace retro::text
