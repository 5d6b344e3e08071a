// Jinja tokens to a tree, with jinja2's grammar.
#pragma once

#include <memory>
#include <string_view>

#include "text/jinja_ast.h"

namespace retro::text::jinja {

/// Parses a template as transformers sets jinja2 up: trim_blocks, lstrip_blocks, `break` and `continue`,
/// `generation` blocks (transparent). Throws Error(model) naming the line.
std::unique_ptr<const Program> parse_template(std::string_view source);

}  // namespace retro::text::jinja
