// Log-probabilities of queried tokens and their gradient, a chunk of rows at a time.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/head.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <array>
#include <cstring>

#include "base/det_math.h"
#include "device/cpu/fast_product.h"
#include "device/cpu/head_rows.h"
#include "device/cpu/kernels.h"
#include "device/cpu/linear.h"
#include "device/cpu/math-inl.h"
#include "device/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

void scale(float* z, size_t n, float factor) {
  const F32 d;
  for (size_t i = 0; i < n; i += kVectorLanes)
    store_n(hn::Mul(load_n(z + i, n - i), hn::Set(d, factor)), z + i, n - i);
}

void cap(float* z, size_t n, float softcap) {
  for (size_t i = 0; i < n; i += kVectorLanes) store_n(soft_cap(load_n(z + i, n - i), softcap), z + i, n - i);
}

// z[i] = factor·e^(z[i] - maximum), times the slope of the soft cap where there is one: z[i] are then capped
// logits.
void scaled_softmax(float* z, size_t n, float maximum, float factor, float softcap) {
  const F32 d;
  for (size_t i = 0; i < n; i += kVectorLanes) {
    const V32 value = load_n(z + i, n - i);
    V32 weight = hn::Mul(exp(hn::Sub(value, hn::Set(d, maximum))), hn::Set(d, factor));
    if (softcap > 0) weight = hn::Mul(weight, soft_cap_slope(value, softcap));
    store_n(weight, z + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(cap);
HWY_EXPORT(scale);
HWY_EXPORT(scaled_softmax);

namespace {

// Rows that carry a query, each with its queries [begin, end).
struct QueriedRow {
  int32_t row;
  int32_t begin;
  int32_t end;
};

struct Chunk {
  std::array<QueriedRow, kMaxHeadChunkRows> rows;
  int32_t count = 0;
};

// The next rows from query `begin` on; returns the first query behind them.
int32_t next_chunk(std::span<const Query> queries, int32_t begin, int32_t limit, Chunk& chunk) {
  const auto size = static_cast<int32_t>(queries.size());
  chunk.count = 0;
  while (begin < size && chunk.count < limit) {
    const int32_t row = queries[static_cast<size_t>(begin)].row;
    int32_t end = begin + 1;
    while (end < size && queries[static_cast<size_t>(end)].row == row) ++end;
    chunk.rows[static_cast<size_t>(chunk.count++)] = {row, begin, end};
    begin = end;
  }
  return begin;
}

// Log-probabilities of a row's queries; in backward mode its logits become their gradient.
void finish_row(const HeadArgs& args, const PassArgs& pass, const QueriedRow& queried, float* z) {
  const auto vocabulary = static_cast<size_t>(args.w.rows);
  if (args.softcap > 0) HWY_DYNAMIC_DISPATCH(cap)(z, vocabulary, args.softcap);
  if (pass.head_mode == HeadMode::sample) {
    const auto i = static_cast<size_t>(queried.begin);
    const Drawn drawn = draw_token(z, vocabulary, pass.draws[i]);
    pass.sampled[i] = drawn.token;
    pass.logprobs[i] = drawn.logprob;
    return;
  }
  if (pass.inverse_temperature != 1) HWY_DYNAMIC_DISPATCH(scale)(z, vocabulary, pass.inverse_temperature);
  const SoftmaxSum softmax = softmax_of(z, vocabulary);
  const double lse = softmax.maximum + det_log(softmax.sum);
  for (int32_t q = queried.begin; q < queried.end; ++q) {
    const auto i = static_cast<size_t>(q);
    pass.logprobs[i] = static_cast<float>(z[pass.queries[i].token] - lse);
  }
  if (pass.head_mode == HeadMode::score) return;
  // The cap of logits that were divided by the temperature.
  const float softcap = args.softcap * pass.inverse_temperature;
  double total = 0;
  for (int32_t q = queried.begin; q < queried.end; ++q) total += pass.dlogprobs[static_cast<size_t>(q)];
  HWY_DYNAMIC_DISPATCH(scaled_softmax)
  (z, vocabulary, softmax.maximum, static_cast<float>(-total * pass.inverse_temperature / softmax.sum),
   softcap);
  for (int32_t q = queried.begin; q < queried.end; ++q) {
    const auto i = static_cast<size_t>(q);
    const double logit = pass.logprobs[i] + lse;
    const double slope = softcap > 0 ? 1 - (logit / softcap) * (logit / softcap) : 1;
    z[pass.queries[i].token] +=
        static_cast<float>(static_cast<double>(pass.dlogprobs[i]) * pass.inverse_temperature * slope);
  }
}

void zero_rows_without_query(const HeadArgs& args, const PassArgs& pass, ThreadPool& pool) {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    const auto before = [](const Query& query, int64_t row) { return query.row < row; };
    auto next = std::lower_bound(pass.queries.begin(), pass.queries.end(), begin, before);
    for (int64_t r = begin; r < end; ++r) {
      while (next != pass.queries.end() && next->row < r) ++next;
      if (next != pass.queries.end() && next->row == r) continue;
      std::memset(args.dh.f32() + r * args.dh.stride, 0, static_cast<size_t>(args.dh.cols) * sizeof(float));
    }
  });
}

// dgathered = dlogits·W, by blocks of the vocabulary that are summed from zero and added in order: one chain
// over 262,144 words would lose digits. `gathered` has served and holds a block's sum.
void input_gradient(const HeadArgs& args, int32_t rows, Workspace& workspace) {
  const int64_t row_bytes = tensor::row_bytes(args.w.dtype, args.w.cols);
  const Matrix& sum = args.dgathered;
  const Matrix& part = args.gathered;
  for (int64_t begin = 0; begin < args.w.rows; begin += kVocabularyBlock) {
    const Weight block{static_cast<const std::byte*>(args.w.data) + begin * row_bytes,
                       std::min(kVocabularyBlock, args.w.rows - begin), args.w.cols, args.w.dtype};
    const Matrix& to = begin == 0 ? sum : part;
    product_nn(args.logits.f32() + begin, args.logits.stride, rows, block, to.f32(), to.stride, false,
               workspace);
    if (begin == 0) continue;
    PassArgs all;
    all.rows = rows;
    add({sum, part, sum}, all, workspace.pool());
  }
}

// logits = gathered·Wᵀ.
void make_logits(const HeadArgs& args, int32_t rows, Workspace& workspace) {
  if (!args.fast) {
    return product_nt(args.gathered.f32(), args.gathered.stride, rows, args.w, args.logits.f32(),
                      args.logits.stride, false, workspace);
  }
  PassArgs all;
  all.rows = rows;
  if (args.gathered8.data != nullptr) quantize({args.gathered, args.gathered8}, all, workspace.pool());
  fast_product(args.gathered, args.gathered8, rows, args.w, args.logits, workspace);
}

void run_chunk(const HeadArgs& args, const PassArgs& pass, const Chunk& chunk, Workspace& workspace) {
  ThreadPool& pool = workspace.pool();
  const auto bytes = static_cast<size_t>(args.w.cols) * sizeof(float);
  for (int32_t i = 0; i < chunk.count; ++i) {
    std::memcpy(args.gathered.f32() + i * args.gathered.stride,
                args.h.f32() + chunk.rows[static_cast<size_t>(i)].row * args.h.stride, bytes);
  }
  make_logits(args, chunk.count, workspace);
  pool.ranges(chunk.count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      finish_row(args, pass, chunk.rows[static_cast<size_t>(i)], args.logits.f32() + i * args.logits.stride);
    }
  });
  if (pass.head_mode != HeadMode::backward) return;
  input_gradient(args, chunk.count, workspace);
  for (int32_t i = 0; i < chunk.count; ++i) {
    std::memcpy(args.dh.f32() + chunk.rows[static_cast<size_t>(i)].row * args.dh.stride,
                args.dgathered.f32() + i * args.dgathered.stride, bytes);
  }
}

}  // namespace

void head(const HeadArgs& args, const PassArgs& pass, Workspace& workspace) noexcept {
  if (pass.head_mode == HeadMode::backward) zero_rows_without_query(args, pass, workspace.pool());
  Chunk chunk;
  const int32_t limit = std::clamp(args.chunk_rows, 1, kMaxHeadChunkRows);
  for (int32_t query = 0; query < static_cast<int32_t>(pass.queries.size());) {
    query = next_chunk(pass.queries, query, limit, chunk);
    run_chunk(args, pass, chunk, workspace);
  }
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
