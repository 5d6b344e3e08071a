// Python's string operations on text with origins: one home for methods and filters.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace retro::text::jinja {

/// str.strip and its sides; null `characters` means whitespace.
const Str* strip(const Str& string, const Str* characters, bool left, bool right, Arena& arena);
/// str.split(separator, limit); a null separator splits at whitespace. A negative limit is none.
List* split(const Str& string, const Str* separator, int64_t limit, Arena& arena);
List* rsplit(const Str& string, const Str* separator, int64_t limit, Arena& arena);
List* split_lines(const Str& string, bool keep_ends, Arena& arena);
const Str* replace(const Str& string, const Str& old, const Str& fresh, int64_t limit, Arena& arena);
const Str* join(const List& parts, const Str& separator, Arena& arena);

enum class Case : uint8_t { upper, lower, title, capitalize, swap };
const Str* change_case(const Str& string, Case to, Arena& arena);
/// jinja2's title filter: a capital after a space, hyphen or opening bracket.
const Str* title_words(const Str& string, Arena& arena);
const Str* reverse(const Str& string, Arena& arena);
/// Pads to `width` characters: share of the padding that goes left is 0 (ljust), 1 (rjust) or 2 (center).
const Str* pad(const Str& string, int64_t width, std::string_view fill, int side, Arena& arena);
const Str* indent(const Str& string, const Str& indention, bool first, bool blank, Arena& arena);
/// The first (or last) place of `part` within characters [begin, end), in characters; -1 if nowhere.
int64_t find(const Str& string, const Str& part, bool last, const Value* begin, const Value* end,
             Arena& arena);
int64_t count(const Str& string, const Str& part);

}  // namespace retro::text::jinja
