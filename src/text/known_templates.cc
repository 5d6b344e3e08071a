#include "text/known_templates.h"

namespace retro::text {

namespace {

// Gemma's "prompt structure" (ai.google.dev/gemma/docs): two roles, the system's text leads the first user
// turn.
constexpr std::string_view kGemma = R"({{ bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role in ['system', 'developer'] %}
        {%- set ns.system = ns.system + (message.content | trim) + '\n\n' %}
    {%- else %}
        {%- set role = 'model' if message.role == 'assistant' else 'user' %}
        {{- '<start_of_turn>' + role + '\n' + ns.system + (message.content | trim) + '<end_of_turn>\n' }}
        {%- set ns.system = '' %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\n' }}
{%- endif %})";

}  // namespace

std::optional<std::string_view> known_template(std::string_view architecture) {
  if (architecture == "gemma" || architecture == "gemma2" || architecture == "gemma3") return kGemma;
  return std::nullopt;
}

}  // namespace retro::text
