#include "run/nearest.h"

#include <algorithm>
#include <vector>

namespace retro::run {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
  // A long name cannot be near a short one; cutting it bounds the work on hostile input.
  constexpr size_t kLongest = 64;
  return *std::min_element(known.begin(), known.end(), [&](std::string_view x, std::string_view y) {
    return edit_distance(name.substr(0, kLongest), x) < edit_distance(name.substr(0, kLongest), y);
  });
}

}  // namespace retro::run
