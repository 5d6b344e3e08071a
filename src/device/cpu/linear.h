// Products with a weight as it lies in the file, and the linear operation made of them.
//
// Every output is one chain of fused multiply-adds in the order of the summed index, begun at zero or at the
// value that is there. So its bits depend on its own row and column alone: not on vector width, tile, panel,
// threads or the other rows of the batch.
#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_pool.h"
#include "device/op_args.h"

namespace retro::device::cpu {

struct Scratch;

/// The pool and, for each of its workers, memory for decoded panels; made once, so that no call allocates.
/// One call at a time may use it.
class Workspace {
 public:
  explicit Workspace(ThreadPool& pool);

  ThreadPool& pool() const { return pool_; }
  Scratch& scratch(int worker) const;

 private:
  struct Free {
    void operator()(Scratch* scratch) const;
  };
  ThreadPool& pool_;
  std::unique_ptr<Scratch[], Free> scratch_;
};

/// The instruction set that the products run on, as Highway names it: "AVX3".
const char* instruction_set();

/// Whether the products can read weights of this type (as tensor::dequantize_row can).
bool can_multiply(DType dtype);

/// y[rows, w.rows] (+)= x[rows, w.cols] · Wᵀ. Strides ldx and ldy in elements. y overlaps neither x nor w.
void product_nt(const float* x, int64_t ldx, int64_t rows, const Weight& w, float* y, int64_t ldy,
                bool accumulate, Workspace& workspace) noexcept;

/// dx[rows, w.cols] (+)= dy[rows, w.rows] · W, summed in the order of W's rows.
void product_nn(const float* dy, int64_t lddy, int64_t rows, const Weight& w, float* dx, int64_t lddx,
                bool accumulate, Workspace& workspace) noexcept;

/// c[a_cols, b_cols] += aᵀ · b with a[rows, a_cols] and b[rows, b_cols], summed in the order of the rows.
void product_tn(const float* a, int64_t lda, int64_t a_cols, const float* b, int64_t ldb, int64_t b_cols,
                int64_t rows, float* c, int64_t ldc, Workspace& workspace) noexcept;

/// The operation LinearArgs describes, on the first `rows` rows.
void linear(const LinearArgs& args, int64_t rows, Workspace& workspace) noexcept;

/// The operation LinearBackArgs describes, on the first `rows` rows.
void linear_back(const LinearBackArgs& args, int64_t rows, Workspace& workspace) noexcept;

/// The operation WeightGradArgs describes, over the first `rows` rows.
void weight_grad(const WeightGradArgs& args, int64_t rows, Workspace& workspace) noexcept;

}  // namespace retro::device::cpu
