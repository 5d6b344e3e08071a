#include "run/workload.h"

#include <algorithm>

#include "base/error.h"
#include "data/packing.h"
#include "engine/pass.h"
#include "run/interrupt.h"

namespace retro::run {

std::vector<algo::SftStep> epoch_steps(const Document& document,
                                       const std::vector<data::TrainingRecord>& records, int64_t epoch) {
  std::vector<int64_t> lengths;
  lengths.reserve(records.size());
  for (const auto& record : records) lengths.push_back(static_cast<int64_t>(record.ids.size()));
  const data::PackingOptions packing{document.training.ctx, document.sft.packing, document.sft.shuffle,
                                     document.training.seed};
  return algo::cut_steps(data::pack_epoch(lengths, packing, epoch), records, document.training.ctx,
                         document.training.step_tokens());
}

engine::PassTotals Workload::totals(int64_t micro_batch) const {
  if (passes.empty()) return engine::pass_totals({&longest_record, 1}, static_cast<int32_t>(micro_batch));
  return passes.at(micro_batch);
}

int32_t Workload::widest_pass(int64_t micro_batch) const {
  return totals(micro_batch).widest;
}

Workload make_workload(const Document& document, const data::Records& training,
                       const data::Records* evaluation, Reporter& reporter) {
  Workload workload;
  workload.longest_record = algo::longest_rows(training.records);
  if (evaluation != nullptr) {
    workload.longest_record = std::max(workload.longest_record, algo::longest_rows(evaluation->records));
  }
  for (int64_t rows = document.training.micro_batch;; rows /= 2) {
    workload.passes[rows].widest = 1;
    if (rows % 2 != 0) break;
  }
  const int64_t epochs = document.training.epochs;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto steps = epoch_steps(document, training.records, epoch);
    for (const auto& step : steps) {
      const std::vector<int32_t> rows = algo::step_rows(step, training.records);
      for (auto& [micro_batch, totals] : workload.passes)
        totals += engine::pass_totals(rows, static_cast<int32_t>(micro_batch));
    }
    if (!document.sft.shuffle) {  // every epoch has the first one's steps
      workload.total_steps = epochs * static_cast<int64_t>(steps.size());
      return workload;
    }
    workload.total_steps += static_cast<int64_t>(steps.size());
    constexpr int64_t kEpochsBetweenReports = 1000;
    if ((epoch + 1) % kEpochsBetweenReports != 0) continue;
    reporter.progress("counting steps", epoch + 1, epochs, "epochs");
    if (interrupted()) fail(ErrorKind::interrupted, "interrupted");
  }
  return workload;
}

Workload single_record(int32_t rows) {
  Workload workload;
  workload.longest_record = rows;
  return workload;
}

}  // namespace retro::run
