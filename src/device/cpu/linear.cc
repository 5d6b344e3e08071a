#include "device/cpu/linear.h"

#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/linear.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include "device/cpu/linear-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <new>

#include "device/cpu/fast_product.h"
#include "device/cpu/output_grid.h"
#include "device/cpu/product.h"
#include "device/cpu/scratch.h"

namespace retro::device::cpu {

HWY_EXPORT(target_name);
HWY_EXPORT(has_decoder);
HWY_EXPORT(tile_rows);
HWY_EXPORT(product_nt_part);
HWY_EXPORT(product_nn_part);
HWY_EXPORT(product_tn_part);

namespace {

/// Decoding a panel's weights costs about as much as so many rows of the product.
constexpr int64_t kDecodeRows = 12;

GridCosts grid_costs() {
  return {HWY_DYNAMIC_DISPATCH(tile_rows)(), kDecodeRows};
}

Weight lora_weight(const void* data, const Lora& lora, int64_t cols) {
  return {data, lora.rank, cols, lora.dtype};
}

/// A·Wᵀ for the first `rows` rows of A.
void run_nt(const ProductArgs& product, int64_t rows, Workspace& workspace) {
  over_output(rows, product.w.rows, grid_costs(), workspace, [&](const OutputPart& output, Scratch& scratch) {
    HWY_DYNAMIC_DISPATCH(product_nt_part)(product, output, scratch);
  });
}

/// A·W for the first `rows` rows of A.
void run_nn(const ProductArgs& product, int64_t rows, Workspace& workspace) {
  over_output(rows, product.w.cols, grid_costs(), workspace, [&](const OutputPart& output, Scratch& scratch) {
    HWY_DYNAMIC_DISPATCH(product_nn_part)(product, output, scratch);
  });
}

/// The product with its tail, in one go where the panel has room for the tail, else one behind the other: the
/// sums have the same order and bits.
template <typename RunProduct, typename RunTail>
void with_tail(ProductArgs product, const Tail& tail, RunProduct&& run_product, RunTail&& run_tail) {
  if (tail.w.rows <= kMaxTailDepth) {
    product.tail = tail;
    run_product(product);
    return;
  }
  run_product(product);
  run_tail(ProductArgs{tail.a, tail.lda, tail.w, product.c, product.ldc, true, {}});
}

void scale_rows(const Matrix& m, int64_t rows, float scale) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = m.f32() + r * m.stride;
    for (int64_t i = 0; i < m.cols; ++i) row[i] *= scale;
  }
}

}  // namespace

void Workspace::Free::operator()(Scratch* scratch) const {
  ::operator delete[](static_cast<void*>(scratch), std::align_val_t{alignof(Scratch)});
}

Workspace::Workspace(ThreadPool& pool) : pool_(pool) {
  const auto count = static_cast<size_t>(pool.size());
  void* memory = ::operator new[](count * sizeof(Scratch), std::align_val_t{alignof(Scratch)});
  scratch_.reset(new (memory) Scratch[count]);
}

Scratch& Workspace::scratch(int worker) const {
  return scratch_.get()[worker];
}

const char* instruction_set() {
  return HWY_DYNAMIC_DISPATCH(target_name)();
}

bool can_multiply(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(has_decoder)(dtype);
}

void product_nt(const float* x, int64_t ldx, int64_t rows, const Weight& w, float* y, int64_t ldy,
                bool accumulate, Workspace& workspace) noexcept {
  run_nt({x, ldx, w, y, ldy, accumulate, {}}, rows, workspace);
}

void product_nn(const float* dy, int64_t lddy, int64_t rows, const Weight& w, float* dx, int64_t lddx,
                bool accumulate, Workspace& workspace) noexcept {
  run_nn({dy, lddy, w, dx, lddx, accumulate, {}}, rows, workspace);
}

void product_tn(const float* a, int64_t lda, int64_t a_cols, const float* b, int64_t ldb, int64_t b_cols,
                int64_t rows, float* c, int64_t ldc, Workspace& workspace) noexcept {
  if (rows <= 0) return;
  const TransposedArgs product = {a, lda, a_cols, b, ldb, rows, c, ldc};
  over_output(1, b_cols, grid_costs(), workspace, [&](const OutputPart& output, Scratch& scratch) {
    HWY_DYNAMIC_DISPATCH(product_tn_part)(product, output, scratch);
  });
}

void linear(const LinearArgs& args, int64_t rows, Workspace& workspace) noexcept {
  const Matrix& x = args.x;
  const Matrix& y = args.y;
  const Lora& lora = args.lora;
  ProductArgs product = {x.f32(), x.stride, args.w, y.f32(), y.stride, false, {}};
  if (args.fast) fast_product(x, args.x8, rows, args.w, y, workspace);
  if (lora.rank == 0) {
    if (!args.fast) run_nt(product, rows, workspace);
    return;
  }
  product_nt(x.f32(), x.stride, rows, lora_weight(lora.a, lora, args.w.cols), args.u.f32(), args.u.stride,
             false, workspace);
  scale_rows(args.u, rows, lora.scale);
  if (y.data == nullptr) return;
  const Tail tail = {args.u.f32(), args.u.stride, lora_weight(lora.bt, lora, args.w.rows)};
  if (args.fast) return run_nn({tail.a, tail.lda, tail.w, y.f32(), y.stride, true, {}}, rows, workspace);
  with_tail(
      product, tail, [&](const ProductArgs& part) { run_nt(part, rows, workspace); },
      [&](const ProductArgs& part) { run_nn(part, rows, workspace); });
}

void linear_back(const LinearBackArgs& args, int64_t rows, Workspace& workspace) noexcept {
  const Matrix& dy = args.dy;
  const Matrix& dx = args.dx;
  const bool wants_dx = dx.data != nullptr;
  const Lora& lora = args.lora;
  const ProductArgs product = {dy.f32(), dy.stride, args.w, dx.f32(), dx.stride, args.accumulate, {}};
  if (lora.rank == 0) {
    if (wants_dx) run_nn(product, rows, workspace);
    return;
  }
  const Matrix& du = args.du;
  product_nt(dy.f32(), dy.stride, rows, lora_weight(lora.bt, lora, args.w.rows), du.f32(), du.stride, false,
             workspace);
  scale_rows(du, rows, lora.scale);
  if (wants_dx) {
    const auto run = [&](const ProductArgs& part) { run_nn(part, rows, workspace); };
    with_tail(product, {du.f32(), du.stride, lora_weight(lora.a, lora, args.w.cols)}, run, run);
  }
  product_tn(du.f32(), du.stride, lora.rank, args.x.f32(), args.x.stride, args.w.cols, rows, args.da,
             args.w.cols, workspace);
  product_tn(args.u.f32(), args.u.stride, lora.rank, dy.f32(), dy.stride, args.w.rows, rows, args.dbt,
             args.w.rows, workspace);
}

void weight_grad(const WeightGradArgs& args, int64_t rows, Workspace& workspace) noexcept {
  product_tn(args.dy.f32(), args.dy.stride, args.dy.cols, args.x.f32(), args.x.stride, args.x.cols, rows,
             args.dw, args.x.cols, workspace);
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
