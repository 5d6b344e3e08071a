// What a run reports, on stderr: a progress bar on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/rate.h"
#include "run/reporter.h"

namespace retro::cli {

/// Where reports go.
struct Screen {
  bool interactive = false;  ///< a terminal that can clear a line
  bool color = false;
  std::function<int()> columns;  ///< asked at each redraw, since a window may change
  std::function<void(std::string_view)> write;
  std::function<double()> seconds;  ///< a clock that does not go back
};

/// stderr: interactive on a terminal whose TERM is not `dumb`, without color where NO_COLOR is set.
Screen standard_error();

/// On a terminal the bar of the running phase is redrawn at most ten times a second and gives way to every
/// line. Elsewhere a long phase writes a line after two seconds and then one every five.
class ProgressReporter : public run::Reporter {
 public:
  /// Takes the program's log over for its lifetime, so that log lines do not run into the bar.
  explicit ProgressReporter(Screen screen = standard_error());
  ~ProgressReporter() override;
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;

  void note(std::string_view text) override;
  void warn(std::string_view text) override;
  void line(std::string_view text) override;
  void progress(std::string_view phase, int64_t done, int64_t total, std::string_view detail) override;

  /// Takes the bar away, as before results go to stdout; the next `progress` brings it back.
  void clear();

 private:
  struct Phase {
    std::string name, detail;
    int64_t done = 0, total = 0;
    double begun = 0;  // seconds
    double shown = 0;  // seconds of the last redraw or line
    bool lines = false;
    RateMeter meter;
  };

  void begin(std::string_view phase, double now);
  void print(std::string_view text);
  void erase();
  void draw();
  std::string figures() const;
  std::string bar_line() const;

  Screen screen_;
  std::mutex mutex_;  // log lines come from any thread
  Phase phase_;
  bool running_ = false;
  bool drawn_ = false;
};

}  // namespace retro::cli
