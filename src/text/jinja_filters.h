// The filters and tests, by name.
#pragma once

#include <string_view>

#include "text/jinja_eval.h"

namespace retro::text::jinja {

using Filter = Value (*)(const Value& subject, const Arguments& arguments, Interpreter& interpreter);
using Test = bool (*)(const Value& subject, const Arguments& arguments, Interpreter& interpreter);

/// Null where there is none of that name.
Filter find_filter(std::string_view name);
Filter find_scalar_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_ordering_filter(std::string_view name);
Test find_test(std::string_view name);

}  // namespace retro::text::jinja
