#include "algo/sft.h"

#include <algorithm>
#include <utility>

namespace retro::algo {

namespace {

// Trained tokens of [begin, end) that have a predecessor.
int64_t count_trained(const data::TrainingRecord& record, int32_t begin, int32_t end) {
  int64_t count = 0;
  for (int32_t t = std::max(begin, 1); t < end; ++t)
    count += record.trained[static_cast<size_t>(t)] != 0 ? 1 : 0;
  return count;
}

}  // namespace

std::vector<SftStep> cut_steps(std::span<const data::Window> windows,
                               std::span<const data::TrainingRecord> records, int64_t ctx,
                               int64_t step_tokens) {
  const int64_t per_window = std::max<int64_t>(1, ctx / step_tokens);
  const int64_t windows_per_step = std::max<int64_t>(1, step_tokens / ctx);
  const int64_t span_tokens = std::min(ctx, step_tokens);
  std::vector<SftStep> steps;
  for (size_t w = 0; w < windows.size(); w += static_cast<size_t>(windows_per_step)) {
    const size_t last = std::min(windows.size(), w + static_cast<size_t>(windows_per_step));
    for (int64_t part = 0; part < per_window; ++part) {
      SftStep step;
      const int64_t from = part * span_tokens;
      const int64_t to = from + span_tokens;
      for (size_t i = w; i < last; ++i) {
        for (const data::Placement& placed : windows[i].records) {
          const auto& record = records[placed.record];
          const auto length = static_cast<int64_t>(record.ids.size());
          const auto offset = static_cast<int64_t>(placed.offset);
          const auto begin = static_cast<int32_t>(std::clamp<int64_t>(from - offset, 0, length));
          const auto end = static_cast<int32_t>(std::clamp<int64_t>(to - offset, 0, length));
          const int64_t trained = count_trained(record, begin, end);
          if (trained > 0) step.spans.push_back({placed.record, begin, end});
          step.trained += trained;
        }
      }
      if (step.trained > 0) steps.push_back(std::move(step));
    }
  }
  return steps;
}

void SftBatch::add(const data::TrainingRecord& record, int32_t begin, int32_t end) {
  const size_t first = targets_.size();
  for (int32_t t = std::max(begin, 1); t < end; ++t) {
    if (record.trained[static_cast<size_t>(t)] != 0) targets_.push_back(t);
  }
  if (targets_.size() > first) pieces_.push_back({&record, first, targets_.size() - first});
}

std::span<const engine::Sequence> SftBatch::finish() {
  logprobs_.assign(targets_.size(), 0.0F);
  dlogprobs_.assign(targets_.size(), -1.0F / static_cast<float>(std::max<size_t>(1, targets_.size())));
  sequences_.clear();
  for (const Piece& piece : pieces_) {
    sequences_.push_back({piece.record->ids,
                          {targets_.data() + piece.first, piece.count},
                          {logprobs_.data() + piece.first, piece.count},
                          {dlogprobs_.data() + piece.first, piece.count}});
  }
  return sequences_;
}

std::span<const engine::Sequence> SftBatch::build(const SftStep& step,
                                                  std::span<const data::TrainingRecord> records) {
  pieces_.clear();
  targets_.clear();
  for (const RecordSpan& span : step.spans) add(records[span.record], span.begin, span.end);
  return finish();
}

std::span<const engine::Sequence> SftBatch::build(std::span<const data::TrainingRecord> records) {
  pieces_.clear();
  targets_.clear();
  for (const auto& record : records) add(record, 0, static_cast<int32_t>(record.ids.size()));
  return finish();
}

double SftBatch::negative_log_likelihood() const {
  double sum = 0;
  for (const float logprob : logprobs_) sum -= static_cast<double>(logprob);
  return sum;
}

std::vector<int32_t> step_rows(const SftStep& step, std::span<const data::TrainingRecord> records) {
  std::vector<int32_t> rows;
  for (const RecordSpan& span : step.spans) {
    const auto& record = records[span.record];
    int32_t last = span.end - 1;
    while (record.trained[static_cast<size_t>(last)] == 0) --last;  // a span has a trained token
    rows.push_back(last);
  }
  return rows;
}

int32_t longest_rows(std::span<const data::TrainingRecord> records) {
  int32_t rows = 0;
  for (const auto& record : records) {
    for (auto t = static_cast<int32_t>(record.ids.size()) - 1; t > rows; --t) {
      if (record.trained[static_cast<size_t>(t)] != 0) rows = t;
    }
  }
  return rows;
}

}  // namespace retro::algo
