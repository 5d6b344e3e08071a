// How a run speaks to its front door: the run layer itself prints nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace retro::run {

/// Texts are single lines without a line end.
class Reporter {
 public:
  virtual ~Reporter() = default;

  /// Something the user should know once: a derived setting, a file that was written.
  virtual void note(std::string_view text) = 0;
  /// Something that is probably not what the user wants.
  virtual void warn(std::string_view text) = 0;
  /// A line of the run's record, one an epoch or evaluation.
  virtual void line(std::string_view text) = 0;
  /// Where a long phase stands: `done` of `total` (0: unknown), with figures to show beside. May be called as
  /// often as is convenient; a phase begins with its first call and ends at done == total or when another
  /// begins.
  virtual void progress(std::string_view phase, int64_t done, int64_t total, std::string_view detail) = 0;
};

/// Says nothing.
class SilentReporter : public Reporter {
 public:
  void note(std::string_view) override {}
  void warn(std::string_view) override {}
  void line(std::string_view) override {}
  void progress(std::string_view, int64_t, int64_t, std::string_view) override {}
};

}  // namespace retro::run
