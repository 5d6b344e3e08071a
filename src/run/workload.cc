#include "run/workload.h"

#include <algorithm>

#include "data/packing.h"
#include "engine/pass.h"

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

int32_t Workload::widest_pass(int64_t micro_batch) const {
  int32_t widest = 1;
  for (const auto& rows : steps) {
    widest = std::max(widest, engine::widest_pass(rows, static_cast<int32_t>(micro_batch)));
  }
  return widest;
}

Workload make_workload(const Document& document, const data::Records& training,
                       const data::Records* evaluation) {
  Workload workload;
  workload.longest_record = algo::longest_rows(training.records);
  if (evaluation != nullptr) {
    workload.longest_record = std::max(workload.longest_record, algo::longest_rows(evaluation->records));
  }
  for (int64_t epoch = 0; epoch < document.training.epochs; ++epoch) {
    const auto steps = epoch_steps(document, training.records, epoch);
    workload.steps_of_epoch.push_back(static_cast<int64_t>(steps.size()));
    // Without a shuffle every epoch has the first one's steps.
    if (epoch > 0 && !document.sft.shuffle) continue;
    for (const auto& step : steps) workload.steps.push_back(algo::step_rows(step, training.records));
  }
  return workload;
}

Workload single_record(int32_t rows) {
  Workload workload;
  workload.longest_record = rows;
  workload.steps = {{rows}};
  return workload;
}

}  // namespace retro::run
