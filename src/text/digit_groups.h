// Pre-tokenizers' groups of three digits, counted from the right as people write them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace retro::text {

/// Ends a part of `piece` after each group of three in a run of numbers (category N), the first group of a
/// run being what is left over; what stands before a run stays with its first group, as in llama.cpp. Appends
/// to `ends`, see CutRule.
void cut_before_digit_groups(std::string_view piece, size_t begin, std::vector<size_t>& ends);

/// Cuts before each digit 0 to 9 that has a multiple of three digits from itself to the run's end.
void cut_digits_by_three(std::string_view piece, size_t begin, std::vector<size_t>& ends);

}  // namespace retro::text
