// Metrics as JSON lines: one object an event, in the order of steps, each event of a step once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"

namespace retro::run {

using MetricValue = std::pair<std::string_view, double>;

/// The file of `[metrics].jsonl`. A line is `{"event":"step","step":12,"time":"2024-05-01T12:00:00.123Z",…}`
/// with the values behind it: numbers in the shortest digits that read back the same, null where not finite.
///
/// A run that resumes at step N first drops the events of later steps, so that no step has two values; events
/// of step N that are in the file already are not written again.
class MetricsLog {
 public:
  using Warn = std::function<void(std::string_view)>;

  /// Writes nothing.
  MetricsLog() = default;

  /// Starts a new file, or with `resumed_step` continues the one there is. Throws Error(io) when it cannot be
  /// written, and Error(config) when the path holds a file that is not of metrics, which is left as it is.
  MetricsLog(std::filesystem::path path, std::optional<int64_t> resumed_step, Warn warn);

  /// Appends one event. A failure to write is told once through `warn` and turns the log off.
  void write(std::string_view event, int64_t step, std::span<const MetricValue> values);

  /// Makes what was written durable; called before a checkpoint, so that no step up to it is missing later.
  void sync();

 private:
  void keep_events(std::string_view text, OutputFile& kept);
  void turn_off(const std::exception& failure);

  std::optional<AppendFile> file_;
  Warn warn_;
  int64_t resumed_step_ = -1;
  std::vector<std::string> present_;  // events of the resumed step that the file holds already
};

}  // namespace retro::run
