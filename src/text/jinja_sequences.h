// What the filters of sequences share: growing a list, attributes by path, keys to order by.
#pragma once

#include <string_view>

#include "text/jinja_eval.h"

namespace retro::text::jinja {

/// Appends and counts it.
void push(List& list, const Value& value, Arena& arena);
/// The tuple (first, second).
Value pair(const Value& first, const Value& second, Arena& arena);
/// The attribute at a dotted path ("function.name", "0.id"), or at an integer; `fallback` where it is
/// undefined.
Value at_path(const Value& item, const Value& path, const Value* fallback, Interpreter& interpreter);
/// What sorting and grouping compare: the attribute, without case unless asked.
Value sort_key(const Value& item, const Value* path, bool case_sensitive, Interpreter& interpreter);

}  // namespace retro::text::jinja
