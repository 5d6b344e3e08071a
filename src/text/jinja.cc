#include "text/jinja.h"

#include <nlohmann/json.hpp>

#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace retro::text {

JinjaTemplate::JinjaTemplate(std::string_view source) : program_(jinja::parse_template(source)) {}
JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

Rendered JinjaTemplate::render(const std::function<void(jinja::Arena&, const Bind&)>& fill, int64_t now,
                               const jinja::Limits& limits) const {
  jinja::Arena arena(limits);
  jinja::Interpreter interpreter(*program_, arena, now);
  fill(arena, [&](std::string_view name, const jinja::Value& value) { interpreter.set_global(name, value); });
  return interpreter.run();
}

Rendered JinjaTemplate::render(const nlohmann::ordered_json& variables, int64_t now,
                               const jinja::Limits& limits) const {
  return render(
      [&](jinja::Arena& arena, const Bind& bind) {
        for (const auto& [name, value] : variables.items())
          bind(name, jinja::from_json(value, Origin(), arena));
      },
      now, limits);
}

}  // namespace retro::text
