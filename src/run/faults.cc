#include "run/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace retro::run {

std::string format_place(const std::string& file, Position at) {
  return at.line > 0 ? fmt::format("{}:{}:{}", file, at.line, at.column) : file;
}

void Faults::throw_if_any() const {
  if (faults_.empty()) return;
  constexpr size_t kShown = 20;
  std::vector<Fault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Fault& a, const Fault& b) {
    return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
  });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kShown); ++i) {
    text += fmt::format("{}{}: {}", i > 0 ? "\n" : "", format_place(file_, sorted[i].at), sorted[i].text);
  }
  if (sorted.size() > kShown) text += fmt::format("\n{}: and {} more", file_, sorted.size() - kShown);
  throw Error(ErrorKind::config, text);
}

}  // namespace retro::run
