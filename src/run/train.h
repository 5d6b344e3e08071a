// The training run: epochs of steps, evaluation, checkpoints, metrics, interruption.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "run/document.h"
#include "run/probe.h"
#include "run/reporter.h"

namespace retro::run {

struct TrainOptions {
  bool resume = false;
  std::optional<std::filesystem::path> state;  // which checkpoint; none is the newest
  std::function<void()> on_start;              // all was checked: from here on, faults are the run's own
  Probe* probe = nullptr;                      // watches a run that samples answers
};

struct TrainResult {
  bool interrupted = false;
  int64_t steps = 0;
  std::map<std::string, double> metrics;  // the final figures by name, as "train/loss"
  double tokens_per_second = 0;
  int64_t peak_rss_bytes = 0;
  std::filesystem::path output;  // empty: interrupted before the first step, nothing was written
  std::optional<std::filesystem::path> best;
};

/// Runs a document to its end. Faults of document, data, model and memory are found before anything is
/// trained or written.
TrainResult train(const Document& document, const TrainOptions& options, Reporter& reporter);

}  // namespace retro::run
