// Supervised fine-tuning: which tokens a step trains, and the gradient of their mean negative log-likelihood.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/packing.h"
#include "data/records.h"
#include "engine/sequence.h"

namespace retro::algo {

/// Tokens [begin, end) of a record, as targets; earlier tokens of the record are their context.
struct RecordSpan {
  size_t record = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

struct SftStep {
  std::vector<RecordSpan> spans;
  int64_t trained = 0;  // target tokens
};

/// Cuts an epoch's windows of `ctx` tokens into steps of `step_tokens`: so many windows, or a part of one.
/// Spans without a trained token make no step. `step_tokens` divides ctx or is a multiple of it.
std::vector<SftStep> cut_steps(std::span<const data::Window> windows,
                               std::span<const data::TrainingRecord> records, int64_t ctx,
                               int64_t step_tokens);

/// The sequences of a step and their gradient weights: each trained token weighs −1/N, N the step's trained
/// tokens, so the loss is their mean negative log-likelihood however the step is cut into passes.
class SftBatch {
 public:
  /// Builds the sequences of `step`; valid until the next build.
  std::span<const engine::Sequence> build(const SftStep& step, std::span<const data::TrainingRecord> records);
  /// The same over all trained tokens of `records`, for evaluation.
  std::span<const engine::Sequence> build(std::span<const data::TrainingRecord> records);

  /// Sum of −log p over the batch's targets, in order, once the engine has filled them.
  double negative_log_likelihood() const;
  int64_t trained() const { return static_cast<int64_t>(targets_.size()); }

 private:
  void add(const data::TrainingRecord& record, int32_t begin, int32_t end);
  std::span<const engine::Sequence> finish();

  struct Piece {
    const data::TrainingRecord* record;
    size_t first;
    size_t count;
  };
  std::vector<Piece> pieces_;
  std::vector<int32_t> targets_;
  std::vector<float> logprobs_;
  std::vector<float> dlogprobs_;
  std::vector<engine::Sequence> sequences_;
};

/// Rows that each sequence of `step` takes in a pass, in the order of the batch.
std::vector<int32_t> step_rows(const SftStep& step, std::span<const data::TrainingRecord> records);

/// Rows that the longest record takes in a pass.
int32_t longest_rows(std::span<const data::TrainingRecord> records);

}  // namespace retro::algo
