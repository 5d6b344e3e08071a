// What a run gives the engine, step by step, so that memory is planned for what comes and no more.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "algo/sft.h"
#include "data/records.h"
#include "engine/pass.h"
#include "run/document.h"
#include "run/reporter.h"

namespace retro::run {

/// The steps of one epoch, from 0; the same for the same document and data.
std::vector<algo::SftStep> epoch_steps(const Document& document,
                                       const std::vector<data::TrainingRecord>& records, int64_t epoch);

struct Workload {
  int32_t longest_record = 0;  // rows, of training and evaluation
  int64_t total_steps = 0;     // over all epochs
  // By micro_batch, the document's and its halves as long as they are whole: the passes of all epochs, or
  // of one where all are alike. Empty:
  // a single record.
  std::map<int64_t, engine::PassTotals> passes;

  /// The passes when each holds at most `micro_batch` rows.
  engine::PassTotals totals(int64_t micro_batch) const;
  /// Rows of the widest pass when passes hold at most `micro_batch`.
  int32_t widest_pass(int64_t micro_batch) const;
};

/// `evaluation` may be null. Memory does not grow with the epochs; throws Error(interrupted).
Workload make_workload(const Document& document, const data::Records& training,
                       const data::Records* evaluation, Reporter& reporter);

/// One record of `rows` rows, for a document whose data is not known yet.
Workload single_record(int32_t rows);

}  // namespace retro::run
