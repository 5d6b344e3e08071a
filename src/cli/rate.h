// How fast a phase goes and how long it has left.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace retro::cli {

/// The rate over the last half minute, so that neither a slow start nor one slow step decides it.
class RateMeter {
 public:
  /// `seconds` on any clock that does not go back.
  void add(double seconds, int64_t done);

  /// Per second; none before two counts at different times.
  std::optional<double> rate() const;

 private:
  struct Sample {
    double seconds;
    int64_t done;
  };
  std::deque<Sample> samples_;
};

/// "3.1/s", or "2.4 s each" below one a second.
std::string format_rate(double per_second);

/// "0:58", "12:05", "1:02:03" or "3 d 4 h".
std::string format_duration(double seconds);

/// A count in at most five characters where it is large: "512", "98304", "4.2M", "1.1G".
std::string format_count(int64_t count);

}  // namespace retro::cli
