// The outer-product tile: C[rows, width] (+)= A[rows, depth] · B[depth, width].
//
// Each element of C is one chain of fused multiply-adds in the order of depth, begun at zero or at C. The
// tile is as large as the registers allow: a row of A and B is then loaded once for `width` and `rows`
// multiply-adds, and there are enough chains to hide the latency of each.

#if defined(RETRO_DEVICE_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_TILE_INL_H_
#undef RETRO_DEVICE_CPU_TILE_INL_H_
#else
#define RETRO_DEVICE_CPU_TILE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "device/cpu/scratch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 32 registers of 512 bits: 12x32 (24 accumulators); 16 of 256: 6x16 (12); 32 of 128 (NEON): 6x16 (24).
constexpr int kFullWidth = HWY_TARGET <= HWY_AVX3 ? 32 : 16;
constexpr int kFullRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
// A strip of few columns (a LoRA's rank) has one vector a row. With 8 rows, rows that are a multiple of 4 KiB
// apart still fit in the ways of an L1 set.
constexpr int kNarrowRows = 8;
static_assert(kFullWidth <= kMaxWidth && kNarrowRows <= kMaxTileRows && kFullRows <= kMaxTileRows);

/// A[i, k] = a[i * a_row + k * a_step], B[k, j] = b[k * b_step + j], C[i, j] = c[i * c_row + j]. Behind
/// `depth` the sums go on with `tail_depth` more rows of B, for which A[i, depth + k] = tail_a[i * tail_row +
/// k * a_step].
struct TileArgs {
  const float* a;
  int64_t a_row;
  int64_t a_step;
  const float* b;
  int64_t b_step;
  int64_t depth;
  float* c;
  int64_t c_row;
  bool accumulate;
  const float* tail_a = nullptr;
  int64_t tail_row = 0;
  int64_t tail_depth = 0;
};

/// The same pointer, of which the compiler does not know how it came about; else it would make all addresses
/// of one pointer and more offsets than there are registers.
HWY_INLINE const float* opaque(const float* pointer) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm("" : "+r"(pointer));
#endif
  return pointer;
}

template <int kRows, int kWidth>
void tile(const TileArgs& args) {
  const hn::CappedTag<float, kWidth> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, kWidth>()));
  constexpr int kVectors = kWidth / kLanes;
  hn::Vec<decltype(d)> sum[kRows][kVectors];
  HWY_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = args.accumulate ? hn::LoadU(d, args.c + i * args.c_row + v * kLanes) : hn::Zero(d);
    }
  }
  // One pointer for three rows: an x86 address adds the stride once or twice, and the rest fits in registers.
  const float* a[(kRows + 2) / 3];
  const float* from = args.a;
  int64_t a_row = args.a_row;
  int64_t depth = args.depth;
  const float* HWY_RESTRICT b = args.b;
  const int64_t a_step = args.a_step;
  const int64_t b_step = args.b_step;
  for (bool tail = false;; tail = true) {
    HWY_UNROLL(16)
    for (int i = 0; i < kRows; i += 3) a[i / 3] = opaque(from + i * a_row);
    for (int64_t k = depth; k > 0; --k) {
      hn::Vec<decltype(d)> right[kVectors];
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * kLanes);
      b += b_step;
      HWY_UNROLL(16)
      for (int i = 0; i < kRows; ++i) {
        const auto left = hn::Set(d, a[i / 3][i % 3 * a_row]);
        HWY_UNROLL(16)
        for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
        if (i % 3 == 2 || i == kRows - 1) a[i / 3] += a_step;
      }
    }
    if (tail || args.tail_depth == 0) break;
    from = args.tail_a;
    a_row = args.tail_row;
    depth = args.tail_depth;
  }
  HWY_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, args.c + i * args.c_row + v * kLanes);
  }
}

/// One row by kLoneStrips full strips, which lie `strip` elements apart: a lone row's chains in one strip are
/// too few to hide the latency of a multiply-add.
constexpr int kLoneStrips = 4;

HWY_INLINE void lone_row_tile(const TileArgs& args, int64_t strip) {
  const hn::CappedTag<float, kFullWidth> d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, kFullWidth>()));
  constexpr int kVectors = kFullWidth / kLanes;
  hn::Vec<decltype(d)> sum[kLoneStrips * kVectors];
  HWY_UNROLL(16)
  for (int i = 0; i < kLoneStrips * kVectors; ++i) {
    sum[i] = args.accumulate ? hn::LoadU(d, args.c + i * kLanes) : hn::Zero(d);
  }
  const float* HWY_RESTRICT b = args.b;
  for (int64_t k = 0; k < args.depth + args.tail_depth; ++k, b += args.b_step) {
    const float* a = k < args.depth ? args.a + k * args.a_step : args.tail_a + (k - args.depth) * args.a_step;
    const auto left = hn::Set(d, *a);
    HWY_UNROLL(16)
    for (int i = 0; i < kLoneStrips * kVectors; ++i) {
      sum[i] = hn::MulAdd(left, hn::LoadU(d, b + i / kVectors * strip + i % kVectors * kLanes), sum[i]);
    }
  }
  HWY_UNROLL(16)
  for (int i = 0; i < kLoneStrips * kVectors; ++i) hn::StoreU(sum[i], d, args.c + i * kLanes);
}

using TileFunction = void (*)(const TileArgs&);

template <int kWidth, int... kIndex>
constexpr std::array<TileFunction, sizeof...(kIndex)> tiles_of(std::integer_sequence<int, kIndex...>) {
  return {&tile<kIndex + 1, kWidth>...};
}

/// Tiles of 1, 2, … rows.
template <int kWidth, int kRows>
constexpr auto kTiles = tiles_of<kWidth>(std::make_integer_sequence<int, kRows>());

/// The panel width for `columns` columns: the least that holds them.
HWY_INLINE int width_for(int64_t columns) {
  if (columns <= 8) return 8;
  if (columns <= 16) return 16;
  return kFullWidth;
}

HWY_INLINE int tile_rows_for(int width) {
  return width == kFullWidth ? kFullRows : kNarrowRows;
}

HWY_INLINE TileFunction tile_function(int width, int rows) {
  if (width == kFullWidth) return kTiles<kFullWidth, kFullRows>[rows - 1];
  if (width == 8) return kTiles<8, kNarrowRows>[rows - 1];
  return kTiles < 16, kFullWidth == 16 ? kFullRows : kNarrowRows > [rows - 1];
}

/// A tile of which only the first `columns` of `width` columns are in C: runs beside it in `edge`.
HWY_INLINE void run_tile(const TileArgs& args, int rows, int width, int64_t columns, float* edge) {
  const TileFunction function = tile_function(width, rows);
  if (columns == width) {
    function(args);
    return;
  }
  TileArgs inner = args;
  inner.c = edge;
  inner.c_row = width;
  if (args.accumulate) {
    for (int i = 0; i < rows; ++i) {
      std::copy_n(args.c + i * args.c_row, columns, edge + i * width);
      std::fill(edge + i * width + columns, edge + (i + 1) * width, 0.0F);
    }
  }
  function(inner);
  for (int i = 0; i < rows; ++i) std::copy_n(edge + i * width, columns, args.c + i * args.c_row);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
