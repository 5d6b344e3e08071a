// The known name that a mistyped one most likely meant.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace retro::run {

/// Restricted Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of neighbours.
size_t edit_distance(std::string_view a, std::string_view b);

/// The first of `known` at the least distance from `name`; `known` is not empty.
std::string_view nearest(std::string_view name, std::span<const std::string_view> known);

}  // namespace retro::run
