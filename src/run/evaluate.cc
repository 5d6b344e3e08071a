#include "run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "algo/sft.h"
#include "base/det_math.h"
#include "base/error.h"
#include "run/interrupt.h"

namespace retro::run {

double Loss::perplexity() const {
  return det_exp(mean());
}

Loss evaluate(engine::Engine& engine, std::span<const data::TrainingRecord> records, std::string_view phase,
              Reporter& reporter) {
  constexpr size_t kBatch = 16;
  Loss loss;
  algo::SftBatch batch;
  for (size_t begin = 0; begin < records.size(); begin += kBatch) {
    if (interrupted()) fail(ErrorKind::interrupted, "interrupted while evaluating");
    const auto part = records.subspan(begin, std::min(kBatch, records.size() - begin));
    engine.score(batch.build(part));
    loss.sum += batch.negative_log_likelihood();
    loss.tokens += batch.trained();
    reporter.progress(phase, static_cast<int64_t>(begin + part.size()), static_cast<int64_t>(records.size()),
                      fmt::format("records, loss {:.4f}", loss.mean()));
  }
  if (!std::isfinite(loss.sum)) fail(ErrorKind::data, "the evaluation loss is not finite");
  return loss;
}

}  // namespace retro::run
