// The arithmetic of the optimizers, element by element, and the norm that clipping needs.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/optimizer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <array>

#include "device/cpu/adamw_step.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vector_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

// m += (1 - β1)·(g - m), v = β2·v + (1 - β2)·g², w = w·keep - step_size·m / (sqrt(v)·inverse_root + eps).
void adamw_range(const AdamWArgs& args, const AdamWStep& step, int64_t begin, int64_t end) {
  const F32 d;
  const V32 rate1 = hn::Set(d, 1 - step.beta1);
  const V32 beta2 = hn::Set(d, step.beta2);
  const V32 rate2 = hn::Set(d, 1 - step.beta2);
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(kVectorLanes)) {
    const auto n = static_cast<size_t>(end - i);
    const V32 g = hn::Mul(load_n(args.gradients.data() + i, n), hn::Set(d, step.gradient_scale));
    V32 m = load_n(args.m.data() + i, n);
    m = hn::MulAdd(rate1, hn::Sub(g, m), m);
    const V32 v = hn::MulAdd(hn::Mul(rate2, g), g, hn::Mul(beta2, load_n(args.v.data() + i, n)));
    store_n(m, args.m.data() + i, n);
    store_n(v, args.v.data() + i, n);
    const V32 root = hn::MulAdd(hn::Sqrt(v), hn::Set(d, step.inverse_root), hn::Set(d, step.eps));
    const V32 change = hn::Div(hn::Mul(hn::Set(d, step.step_size), m), root);
    const V32 kept = hn::Mul(load_n(args.weights.data() + i, n), hn::Set(d, step.keep));
    store_n(hn::Sub(kept, change), args.weights.data() + i, n);
  }
}

// w -= lr·(g + weight_decay·w).
void sgd_range(const SgdArgs& args, int64_t begin, int64_t end) {
  const F32 d;
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(kVectorLanes)) {
    const auto n = static_cast<size_t>(end - i);
    const V32 g = hn::Mul(load_n(args.gradients.data() + i, n), hn::Set(d, args.gradient_scale));
    const V32 w = load_n(args.weights.data() + i, n);
    const V32 change = hn::MulAdd(hn::Set(d, args.weight_decay), w, g);
    store_n(hn::NegMulAdd(hn::Set(d, args.lr), change, w), args.weights.data() + i, n);
  }
}

void combine_range(const CombineArgs& args, int64_t begin, int64_t end) {
  const F32 d;
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(kVectorLanes)) {
    const auto n = static_cast<size_t>(end - i);
    const V32 a = hn::Mul(hn::Set(d, args.alpha), load_n(args.a.data() + i, n));
    store_n(hn::MulAdd(hn::Set(d, args.beta), load_n(args.b.data() + i, n), a), args.out.data() + i, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(adamw_range);
HWY_EXPORT(sgd_range);
HWY_EXPORT(combine_range);

namespace {

constexpr int64_t kGrain = 1024;

}  // namespace

double sum_of_squares(std::span<const float> values, ThreadPool& pool) noexcept {
  // The cut into blocks, and within a block into lanes, depends on the count alone.
  constexpr int64_t kBlocks = 256;
  constexpr int64_t kLanes = 8;
  std::array<double, kBlocks> sums{};
  const auto count = static_cast<int64_t>(values.size());
  const int64_t length = (count / kBlocks / kLanes + 1) * kLanes;
  pool.ranges(kBlocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = std::min(block * length, count);
      const int64_t last = std::min(first + length, count);
      double lanes[kLanes] = {};
      int64_t i = first;
      for (; i + kLanes <= last; i += kLanes) {
        for (int64_t j = 0; j < kLanes; ++j) {
          const double value = values[static_cast<size_t>(i + j)];
          lanes[j] += value * value;
        }
      }
      for (; i < last; ++i) {
        const double value = values[static_cast<size_t>(i)];
        lanes[(i - first) & (kLanes - 1)] += value * value;
      }
      double sum = 0;
      for (const double lane : lanes) sum += lane;
      sums[static_cast<size_t>(block)] = sum;
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void adamw(const AdamWArgs& args, ThreadPool& pool) noexcept {
  const AdamWStep step = adamw_step(args);
  pool.ranges(static_cast<int64_t>(args.weights.size()), kGrain, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(adamw_range)(args, step, begin, end);
  });
}

void sgd(const SgdArgs& args, ThreadPool& pool) noexcept {
  pool.ranges(static_cast<int64_t>(args.weights.size()), kGrain, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(sgd_range)(args, begin, end);
  });
}

void combine(const CombineArgs& args, ThreadPool& pool) noexcept {
  pool.ranges(static_cast<int64_t>(args.out.size()), kGrain, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(combine_range)(args, begin, end);
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
