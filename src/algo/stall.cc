#include "algo/stall.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace retro::algo {

StallWatch::StallWatch(int64_t max_updates, StallState state) : max_updates_(max_updates), state_(state) {}

bool StallWatch::close_update(std::span<const DeadCause> groups) {
  if (std::count(groups.begin(), groups.end(), DeadCause::none) > 0) {
    state_ = {};
    return false;
  }
  ++state_.updates;
  for (const DeadCause cause : groups) ++state_.groups.at(static_cast<size_t>(cause) - 1);
  return max_updates_ > 0 && state_.updates >= max_updates_;
}

std::string StallWatch::report(std::string_view section, int64_t max_new_tokens) const {
  const int64_t all = std::accumulate(state_.groups.begin(), state_.groups.end(), int64_t{0});
  const auto percent = [&](size_t cause) {
    return all == 0 ? 0.0 : 100.0 * static_cast<double>(state_.groups.at(cause)) / static_cast<double>(all);
  };
  std::string text = fmt::format(
      "{} updates in a row had nothing to train on: of their {} groups {:.0f} % were truncated, {:.0f} % had "
      "rewards all alike, {:.0f} % went unscored.",
      state_.updates, all, percent(0), percent(1), percent(2));
  const auto worst = std::max_element(state_.groups.begin(), state_.groups.end()) - state_.groups.begin();
  if (all > 0 && worst == 0) {
    text += fmt::format(" Answers hit [{0}.sampling].max_new_tokens = {1} before they ended: raise it",
                        section, max_new_tokens);
  } else if (all > 0 && worst == 1) {
    text += fmt::format(
        " The reward program gives every answer of a prompt the same reward: choose prompts that the model "
        "sometimes gets right, grade in steps, or raise [{}].group_size",
        section);
  } else if (all > 0) {
    text += " The judge gave no verdict: see its errors";
  }
  return text + fmt::format(" ([{}].max_stalled_updates = {})", section, max_updates_);
}

}  // namespace retro::algo
