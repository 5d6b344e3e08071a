#pragma once

#include <cstdint>

namespace retro::device::cpu {

/// The vocabulary is summed in blocks of this many words, whatever the chunk, the threads and the vector
/// width.
constexpr int64_t kVocabularyBlock = 4096;

/// Σ e^z of a row of logits as sum·e^maximum.
struct SoftmaxSum {
  float maximum = 0;
  double sum = 0;
};

}  // namespace retro::device::cpu
