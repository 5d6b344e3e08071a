#pragma once

#include <cstddef>
#include <cstdint>

#include "device/op_args.h"

namespace retro::device::cpu {

/// The vocabulary is summed in blocks of this many words, whatever the chunk, the threads and the vector
/// width.
constexpr int64_t kVocabularyBlock = 4096;

/// Σ e^z of a row of logits as sum·e^maximum.
struct SoftmaxSum {
  float maximum = 0;
  double sum = 0;
};

/// The most blocks that a row may have.
constexpr int64_t kMaxVocabularyBlocks = 256;

/// Σ e^z of one block as sum·e^maximum.
struct BlockSum {
  float maximum = 0;
  float sum = 0;
};

/// The sum of a row, of at most kMaxVocabularyBlocks blocks.
SoftmaxSum softmax_of(const float* z, size_t n);

struct Drawn {
  int32_t token = -1;  // -1: a logit is not finite
  float logprob = 0;
};

/// Draws from a row of logits, which are multiplied by the draw's inverse temperature on the way.
Drawn draw_token(float* z, size_t n, const Draw& draw);

}  // namespace retro::device::cpu
