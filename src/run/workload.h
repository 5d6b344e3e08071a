// What a run gives the engine, step by step, so that memory is planned for what comes and no more.
#pragma once

#include <cstdint>
#include <vector>

#include "algo/sft.h"
#include "data/records.h"
#include "run/document.h"

namespace retro::run {

/// The steps of one epoch, from 0; the same for the same document and data.
std::vector<algo::SftStep> epoch_steps(const Document& document,
                                       const std::vector<data::TrainingRecord>& records, int64_t epoch);

struct Workload {
  int32_t longest_record = 0;               // rows, of training and evaluation
  std::vector<std::vector<int32_t>> steps;  // rows of each step's sequences, in order, over all epochs
  std::vector<int64_t> steps_of_epoch;

  /// Rows of the widest pass when passes hold at most `micro_batch`.
  int32_t widest_pass(int64_t micro_batch) const;
};

/// `evaluation` may be null.
Workload make_workload(const Document& document, const data::Records& training,
                       const data::Records* evaluation);

/// One record of `rows` rows, for a document whose data is not known yet.
Workload single_record(int32_t rows);

}  // namespace retro::run
