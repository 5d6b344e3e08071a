// Loss over records without training.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/records.h"
#include "engine/engine.h"
#include "run/reporter.h"

namespace retro::run {

struct Loss {
  double sum = 0;  // −log p over all trained tokens, in nats
  int64_t tokens = 0;

  double mean() const { return sum / static_cast<double>(tokens); }
  double perplexity() const;
};

/// Sums in the order of the records, so that the bits depend on neither passes nor threads. Throws
/// Error(data) when the loss is not finite, and Error(interrupted) when a stop was asked for.
Loss evaluate(engine::Engine& engine, std::span<const data::TrainingRecord> records, std::string_view phase,
              Reporter& reporter);

}  // namespace retro::run
