// Python's two string formatters.
#pragma once

#include "text/jinja_eval.h"

namespace retro::text::jinja {

/// `format % arguments`: a tuple gives one value each, a dict gives `%(name)s`, anything else the one value.
const Str* format_percent(const Str& format, const Value& arguments, Arena& arena);

/// `format.format(arguments)`: `{}`, `{0}`, `{name.field[0]}`, `!r` and `!s`, fill, alignment, sign, width,
/// precision and the types s, d, x, X, o, b, c, e, f, g, %.
const Str* format_braces(const Str& format, const Arguments& arguments, Interpreter& interpreter);

}  // namespace retro::text::jinja
