// A Jinja template as transformers runs them: Python's jinja2, immutable sandbox, with origins on every byte.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "text/jinja_value.h"
#include "text/rendering.h"

namespace retro::text {

namespace jinja {
struct Program;
}

/// Immutable once parsed; safe to render from several threads.
class JinjaTemplate {
 public:
  /// Throws Error(model) naming the line where the source does not parse.
  explicit JinjaTemplate(std::string_view source);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  /// Binds variables by name.
  using Bind = std::function<void(std::string_view name, const jinja::Value& value)>;
  /// Renders with the variables that `fill` makes in the rendering's arena and binds. `now` is the civil
  /// time, in seconds since 1970, that `strftime_now` sees. Throws Error(model), naming the line, where the
  /// template fails or goes past `limits`; Error(data) where the template itself raises.
  Rendered render(const std::function<void(jinja::Arena& arena, const Bind& bind)>& fill, int64_t now,
                  const jinja::Limits& limits = {}) const;
  /// Renders with the members of `variables`, an object; every string counts as the template's own.
  Rendered render(const nlohmann::ordered_json& variables, int64_t now,
                  const jinja::Limits& limits = {}) const;

 private:
  std::unique_ptr<const jinja::Program> program_;
};

}  // namespace retro::text
