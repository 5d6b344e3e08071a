// Y = X·Wᵀ with plain weights, for sampling: lanes along k, so that a weight is read and widened in registers
// for a few rows of X at once and never written down.
//
// An output sums in 16 virtual lanes: lane i takes k = i, i + 16, … in order, and the lanes are added in the
// tree of reduce-inl.h. So its bits depend on its own rows of X and W alone.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/plain_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>

#include "device/cpu/fast_product.h"
#include "device/cpu/product.h"
#include "device/cpu/reduce-inl.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

// 16 or 4 outputs: their lanes fill the registers.
constexpr int kPlainTile = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
// Rows of X over which all of W passes: they stay in the L2 cache.
constexpr int64_t kPlainRows = 64;

struct LoadF32 {
  using Element = float;
  static HWY_INLINE V32 load(const float* at, size_t count) { return load_n(at, count); }
};

struct LoadF16 {
  using Element = uint16_t;
  static HWY_INLINE V32 load(const uint16_t* at, size_t count) { return load_f16_n(at, count); }
};

struct LoadBF16 {
  using Element = uint16_t;
  static HWY_INLINE V32 load(const uint16_t* at, size_t count) {
    const hn::Rebind<uint16_t, F32> bits;
    const hn::RebindToUnsigned<F32> words;
    if (HWY_LIKELY(count >= kVectorLanes)) {
      return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(bits, at))));
    }
    HWY_ALIGN uint16_t lanes[kVectorLanes] = {};
    std::memcpy(lanes, at, count * sizeof(uint16_t));
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::Load(bits, lanes))));
  }
};

struct PlainArgs {
  const float* x;
  int64_t ldx;
  const std::byte* w;
  int64_t row_bytes;
  int64_t depth;
  float* y;
  int64_t ldy;
};

#if HWY_TARGET != HWY_SCALAR

using Quad = hn::FixedTag<float, 4>;

/// Lanes i, i + 4, i + 8 and i + 12 added as sum_of_lanes adds them.
HWY_INLINE hn::Vec<Quad> sum_to_quad(const V32 (&parts)[kParts]) {
  const Quad d;
  HWY_ALIGN float lanes[kVirtualLanes];
  for (size_t part = 0; part < kParts; ++part) hn::Store(parts[part], F32(), lanes + part * kVectorLanes);
  const auto even = hn::Add(hn::Load(d, lanes), hn::Load(d, lanes + 8));
  return hn::Add(even, hn::Add(hn::Load(d, lanes + 4), hn::Load(d, lanes + 12)));
}

/// to[c] = the sum of the lanes of sums[c], bit for bit sum_of_lanes.
HWY_INLINE void store_four_sums(const V32 (&sums)[4][kParts], float* to) {
  const Quad d;
  hn::Vec<Quad> v[4];
  for (int c = 0; c < 4; ++c) v[c] = sum_to_quad(sums[c]);
  for (int round = 0; round < 2; ++round) {
    const hn::Vec<Quad> w[4] = {v[0], v[1], v[2], v[3]};
    for (int i = 0; i < 2; ++i) {
      v[2 * i] = hn::InterleaveLower(d, w[i], w[i + 2]);
      v[2 * i + 1] = hn::InterleaveUpper(d, w[i], w[i + 2]);
    }
  }
  hn::StoreU(hn::Add(hn::Add(v[0], v[2]), hn::Add(v[1], v[3])), d, to);
}

#endif

/// to[c] = the sum of the lanes of sums[c].
template <int kColumns>
HWY_INLINE void store_sums(const V32 (&sums)[kColumns][kParts], float* to) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kColumns == 4) return store_four_sums(sums, to);
#endif
  for (int c = 0; c < kColumns; ++c) {
    Lanes16 lanes;
    for (size_t part = 0; part < kParts; ++part) lanes.part[part] = sums[c][part];
    to[c] = sum_of_lanes(lanes);
  }
}

/// y[kRows, kColumns] of as many rows of X and of W.
template <class Load, int kRows, int kColumns>
void plain_tile(const PlainArgs& args) {
  const F32 d;
  V32 sum[kRows][kColumns][kParts];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      HWY_UNROLL(4)
      for (size_t part = 0; part < kParts; ++part) sum[r][c][part] = hn::Zero(d);
    }
  }
  const auto step = [&](int64_t k, size_t part, size_t count) HWY_ATTR {
    const auto at = k + static_cast<int64_t>(part * kVectorLanes);
    V32 weights[kColumns];
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      const auto* row = reinterpret_cast<const typename Load::Element*>(args.w + c * args.row_bytes);
      weights[c] = Load::load(row + at, count);
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
      // A row alone waits for W, which is then read once: ask early, for the tile after the next.
      if constexpr (kRows == 1) {
        __builtin_prefetch(args.w + (c + 2 * kColumns) * args.row_bytes + at * int64_t{sizeof(*row)}, 0, 2);
      }
#endif
    }
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      const V32 x = load_n(args.x + r * args.ldx + at, count);
      HWY_UNROLL(4)
      for (int c = 0; c < kColumns; ++c) sum[r][c][part] = hn::MulAdd(x, weights[c], sum[r][c][part]);
    }
  };
  const int64_t whole = args.depth / 16 * 16;
  for (int64_t k = 0; k < whole; k += 16) {
    HWY_UNROLL(4)
    for (size_t part = 0; part < kParts; ++part) step(k, part, kVectorLanes);
  }
  for (size_t part = 0; part < kParts; ++part) {
    const auto left = args.depth - whole - static_cast<int64_t>(part * kVectorLanes);
    if (left > 0) step(whole, part, static_cast<size_t>(left));
  }
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) store_sums<kColumns>(sum[r], args.y + r * args.ldy);
}

using PlainTile = void (*)(const PlainArgs&);

template <class Load, int kRows>
PlainTile plain_tile_of(int64_t columns) {
  static_assert(kPlainTile == 2 || kPlainTile == 4);
  if (columns == 1) return &plain_tile<Load, kRows, 1>;
  if (kPlainTile == 2 || columns == 2) return &plain_tile<Load, kRows, 2>;
  return columns == 3 ? &plain_tile<Load, kRows, kPlainTile - 1> : &plain_tile<Load, kRows, kPlainTile>;
}

template <class Load>
PlainTile plain_tile_of(int64_t rows, int64_t columns) {
  if (rows == 1) return plain_tile_of<Load, 1>(columns);
  if (kPlainTile == 2 || rows == 2) return plain_tile_of<Load, 2>(columns);
  return rows == 3 ? plain_tile_of<Load, kPlainTile - 1>(columns) : plain_tile_of<Load, kPlainTile>(columns);
}

template <class Load>
void run_plain(const PlainArgs& whole, int64_t rows, int64_t columns) {
  for (int64_t block = 0; block < rows; block += kPlainRows) {
    const int64_t end = std::min(rows, block + kPlainRows);
    for (int64_t column = 0; column < columns; column += kPlainTile) {
      for (int64_t row = block; row < end; row += kPlainTile) {
        PlainArgs args = whole;
        args.x += row * whole.ldx;
        args.w += column * whole.row_bytes;
        args.y += row * whole.ldy + column;
        plain_tile_of<Load>(std::min<int64_t>(kPlainTile, end - row),
                            std::min<int64_t>(kPlainTile, columns - column))(args);
      }
    }
  }
}

void plain_part(const Matrix& x, const Weight& w, const Matrix& y, const OutputPart& output) {
  const int64_t row_bytes = tensor::row_bytes(w.dtype, w.cols);
  const PlainArgs args = {x.f32() + output.row_begin * x.stride,
                          x.stride,
                          static_cast<const std::byte*>(w.data) + output.column_begin * row_bytes,
                          row_bytes,
                          w.cols,
                          y.f32() + output.row_begin * y.stride + output.column_begin,
                          y.stride};
  const int64_t rows = output.row_end - output.row_begin;
  const int64_t columns = output.column_end - output.column_begin;
  if (w.dtype == DType::F32) return run_plain<LoadF32>(args, rows, columns);
  if (w.dtype == DType::F16) return run_plain<LoadF16>(args, rows, columns);
  run_plain<LoadBF16>(args, rows, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "device/cpu/output_grid.h"

namespace retro::device::cpu {

HWY_EXPORT(plain_part);

void plain_product(const Matrix& x, int64_t rows, const Weight& w, const Matrix& y,
                   Workspace& workspace) noexcept {
  constexpr int64_t kTileHeight = 4;
  const auto run = HWY_DYNAMIC_DISPATCH(plain_part);
  over_output(rows, w.rows, {kTileHeight, 0}, workspace,
              [&](const OutputPart& output, Scratch&) { run(x, w, y, output); });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
