#include "cli/rate.h"

#include <fmt/format.h>

#include <cmath>

namespace retro::cli {

namespace {

constexpr double kWindowSeconds = 30;
constexpr double kSampleSeconds = 0.1;  // what bounds the window's length in samples
constexpr size_t kFewestSamples = 3;    // steps slower than the window still give a rate

}  // namespace

void RateMeter::add(double seconds, int64_t done) {
  if (!samples_.empty() && done < samples_.back().done) samples_.clear();
  const size_t count = samples_.size();
  // Of counts that follow closely the last stands for all; the first stays, as the start.
  if (count >= 2 && seconds - samples_[count - 2].seconds < kSampleSeconds) samples_.pop_back();
  samples_.push_back({seconds, done});
  while (samples_.size() > kFewestSamples && seconds - samples_[1].seconds > kWindowSeconds) {
    samples_.pop_front();
  }
}

std::optional<double> RateMeter::rate() const {
  if (samples_.size() < 2) return std::nullopt;
  const double seconds = samples_.back().seconds - samples_.front().seconds;
  const auto done = static_cast<double>(samples_.back().done - samples_.front().done);
  if (seconds <= 0 || done <= 0) return std::nullopt;
  return done / seconds;
}

std::string format_rate(double per_second) {
  if (per_second < 1) return fmt::format("{:.1f} s each", 1 / per_second);
  if (per_second < 100) return fmt::format("{:.1f}/s", per_second);
  return format_count(std::llround(std::min(per_second, 1e18))) + "/s";
}

std::string format_duration(double seconds) {
  const int64_t whole = std::llround(std::min(std::max(seconds, 0.0), 1e15));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours >= 48) return fmt::format("{} d {} h", hours / 24, hours % 24);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string format_count(int64_t count) {
  constexpr const char* kUnits[] = {"M", "G", "T"};
  if (count < 1'000'000) return fmt::format("{}", count);
  double value = static_cast<double>(count) / 1e6;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace retro::cli
