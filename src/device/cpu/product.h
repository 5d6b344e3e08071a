// What the products over panels are given.
#pragma once

#include <cstdint>

#include "device/op_args.h"

namespace retro::device::cpu {

/// A product of small inner dimension that is added to another's sums: A [rows, w.rows] times W [w.rows,
/// columns].
struct Tail {
  const float* a = nullptr;
  int64_t lda = 0;
  Weight w;

  bool there() const { return a != nullptr; }
};

/// C (+)= A·Wᵀ or A·W, then the tail where there is one.
struct ProductArgs {
  const float* a = nullptr;
  int64_t lda = 0;
  Weight w;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
  Tail tail;
};

/// C[a_cols, …] += Aᵀ·B over `rows` rows.
struct TransposedArgs {
  const float* a = nullptr;
  int64_t lda = 0;
  int64_t a_cols = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  int64_t rows = 0;
  float* c = nullptr;
  int64_t ldc = 0;
};

/// A rectangle of the output, made by one worker.
struct OutputPart {
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t column_begin = 0;
  int64_t column_end = 0;
};

}  // namespace retro::device::cpu
