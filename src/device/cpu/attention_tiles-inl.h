// The small matrix products of attention, and what brings its tiles into place.

#if defined(RETRO_DEVICE_CPU_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_ATTENTION_TILES_INL_H_
#undef RETRO_DEVICE_CPU_ATTENTION_TILES_INL_H_
#else
#define RETRO_DEVICE_CPU_ATTENTION_TILES_INL_H_
#endif

#include "device/cpu/attention_tiles.h"
#include "device/cpu/convert_row.h"
#include "device/cpu/vector_io-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

// A register tile is kRows x kVectors accumulators. AVX-512 and NEON have 32 registers, AVX2 has 16.
constexpr size_t kRegisters = HWY_TARGET == HWY_AVX2 ? 16 : 32;
constexpr size_t kLaneVectors = 3;                        // of the products whose columns are lanes
constexpr size_t kLaneRows = kRegisters == 32 ? 8 : 4;    // divides 64 keys and any multiple of 8 elements
constexpr size_t kKeyVectors = kRegisters == 32 ? 4 : 2;  // of the products whose columns are keys
constexpr size_t kKeyRows = 6;                            // divides 48 lanes
constexpr size_t kDimVectors = 2;                      // of the products whose columns are elements of a head
constexpr size_t kDimRows = kRegisters == 32 ? 8 : 4;  // divides 64 keys and 48 lanes
static_assert(kBlockLanes % (kLaneVectors * kVectorLanes) == 0 && kTileKeys % kLaneRows == 0);
static_assert(kTileKeys % (kKeyVectors * kVectorLanes) == 0 && kBlockLanes % kKeyRows == 0);

/// Where a product's accumulators start: at zero, at what C holds, or at that times a factor a column.
enum class Start { zero, sum, scaled };

/// C[i][j] = start + Σ_k a(i, k)·b[k][j] in the order of k, for kRows x (kVectors·lanes) of C.
template <size_t kRows, size_t kVectors, size_t kRowStep, size_t kInnerStep, Start kStart>
HWY_INLINE void register_tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t b_stride,
                              size_t inner, float* HWY_RESTRICT c, size_t c_stride,
                              const float* HWY_RESTRICT factors) {
  const F32 d;
  V32 sum[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (size_t j = 0; j < kVectors; ++j) {
      if constexpr (kStart == Start::zero) sum[i][j] = hn::Zero(d);
      if constexpr (kStart != Start::zero) sum[i][j] = hn::LoadU(d, c + i * c_stride + j * kVectorLanes);
      if constexpr (kStart == Start::scaled) {
        sum[i][j] = hn::Mul(sum[i][j], hn::LoadU(d, factors + j * kVectorLanes));
      }
    }
  }
  for (size_t k = 0; k < inner; ++k) {
    V32 column[kVectors];
#pragma GCC unroll 16
    for (size_t j = 0; j < kVectors; ++j) column[j] = hn::LoadU(d, b + k * b_stride + j * kVectorLanes);
#pragma GCC unroll 16
    for (size_t i = 0; i < kRows; ++i) {
      const V32 factor = hn::Set(d, a[i * kRowStep + k * kInnerStep]);
#pragma GCC unroll 16
      for (size_t j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(factor, column[j], sum[i][j]);
    }
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 16
    for (size_t j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c + i * c_stride + j * kVectorLanes);
  }
}

/// Lanes of a block that are computed: whole groups of vectors.
HWY_INLINE size_t padded_lanes(size_t count) {
  constexpr size_t kStep = kLaneVectors * kVectorLanes;
  return (count + kStep - 1) / kStep * kStep;
}

/// c[i][lane] = Σ_k a[i][k]·b[k][lane]: `rows` rows of a tile (stride kTileStride) by a block.
HWY_INLINE void tile_by_block(const float* a, size_t rows, const float* b, size_t inner, size_t lanes,
                              float* c) {
  for (size_t j = 0; j < lanes; j += kLaneVectors * kVectorLanes) {
    for (size_t i = 0; i < rows; i += kLaneRows) {
      register_tile<kLaneRows, kLaneVectors, kTileStride, 1, Start::zero>(
          a + i * kTileStride, b + j, kBlockLanes, inner, c + i * kBlockLanes + j, kBlockLanes, nullptr);
    }
  }
}

/// c[i][lane] = c[i][lane] (·factors[lane]) + Σ_k a[k][i]·b[k][lane]: columns of a tile by a block.
template <Start kStart>
HWY_INLINE void tile_across_by_block(const float* a, size_t columns, const float* b, size_t inner,
                                     size_t lanes, float* c, const float* factors) {
  for (size_t j = 0; j < lanes; j += kLaneVectors * kVectorLanes) {
    for (size_t i = 0; i < columns; i += kLaneRows) {
      register_tile<kLaneRows, kLaneVectors, 1, kTileStride, kStart>(
          a + i, b + j, kBlockLanes, inner, c + i * kBlockLanes + j, kBlockLanes, factors + j);
    }
  }
}

/// c[lane][key] = Σ_k a[lane][k]·b[k][key], `lanes` a multiple of kKeyRows.
HWY_INLINE void block_by_tile(const float* a, size_t lanes, const float* b, size_t inner, float* c) {
  for (size_t j = 0; j < kTileKeys; j += kKeyVectors * kVectorLanes) {
    for (size_t i = 0; i < lanes; i += kKeyRows) {
      register_tile<kKeyRows, kKeyVectors, kTileStride, 1, Start::zero>(
          a + i * kTileStride, b + j, kTileKeys, inner, c + i * kTileKeys + j, kTileKeys, nullptr);
    }
  }
}

/// c[key][e] += Σ_lane a[lane][key]·b[lane][e] for keys [first, last), both multiples of 8; `columns` is
/// head_dim rounded up to 32.
HWY_INLINE void block_across_by_block(const float* a, const float* b, size_t lanes, size_t first, size_t last,
                                      size_t columns, float* c) {
  for (size_t j = 0; j < columns; j += kDimVectors * kVectorLanes) {
    for (size_t i = first; i < last; i += kDimRows) {
      register_tile<kDimRows, kDimVectors, 1, kTileKeys, Start::sum>(
          a + i, b + j, kTileStride, lanes, c + i * kTileStride + j, kTileStride, nullptr);
    }
  }
}

/// c[lane][e] += Σ_key a[lane][key]·b[key][e], `lanes` a multiple of kDimRows; `columns` as above.
HWY_INLINE void block_by_rows(const float* a, const float* b, size_t lanes, size_t inner, size_t columns,
                              float* c) {
  for (size_t j = 0; j < columns; j += kDimVectors * kVectorLanes) {
    for (size_t i = 0; i < lanes; i += kDimRows) {
      register_tile<kDimRows, kDimVectors, kTileKeys, 1, Start::sum>(
          a + i * kTileKeys, b + j, kTileStride, inner, c + i * kTileStride + j, kTileStride, nullptr);
    }
  }
}

/// head_dim rounded up to what every product's columns divide.
HWY_INLINE size_t padded_dim(int32_t head_dim) {
  return (static_cast<size_t>(head_dim) + 31) / 32 * 32;
}

/// One row of a carry or gradient into a tile row, with zeros up to padded_dim.
HWY_INLINE void load_tile_row(const Matrix& matrix, int64_t row, int64_t column, size_t count, float* to) {
  const size_t padded = padded_dim(static_cast<int32_t>(count));
  const std::byte* from = row_address(matrix, row);
  if (matrix.dtype == DType::F16) {
    const auto* p = reinterpret_cast<const uint16_t*>(from) + column;
    for (size_t i = 0; i < count; i += kVectorLanes) hn::StoreU(load_f16_n(p + i, count - i), F32(), to + i);
  } else {
    const auto* p = reinterpret_cast<const float*>(from) + column;
    for (size_t i = 0; i < count; i += kVectorLanes) hn::StoreU(load_n(p + i, count - i), F32(), to + i);
  }
  for (size_t i = (count + kVectorLanes - 1) / kVectorLanes * kVectorLanes; i < padded; ++i) to[i] = 0;
}

/// Keys of a tile that are computed when the last one wanted is `end` - 1: whole register tiles. The keys
/// behind are masked in every lane, so leaving them out changes nothing.
HWY_INLINE size_t computed_keys(int32_t tile, int32_t end) {
  return (static_cast<size_t>(end - tile * kTileKeys) + 7) / 8 * 8;
}

/// The tile rows [0, end - 64·tile) from the carry, zeros in the rows behind that are computed.
HWY_INLINE void load_tile(const PassArgs& pass, const LaneBlock& block, int32_t head_dim, int32_t tile,
                          int32_t end, const Matrix& carry, float* to) {
  KeyRun runs[kTileKeys];
  const auto width = static_cast<size_t>(head_dim);
  const int32_t count = key_runs(pass.segments, block.segment, tile, end, runs);
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t r = 0; r < runs[i].count; ++r) {
      load_tile_row(carry, runs[i].carry_row + r, int64_t{block.kv_head} * head_dim, width,
                    to + (runs[i].tile_row + r) * kTileStride);
    }
  }
  const auto computed = static_cast<int32_t>(computed_keys(tile, end));
  for (int32_t r = end - tile * kTileKeys; r < computed; ++r) {
    std::memset(to + r * kTileStride, 0, padded_dim(head_dim) * sizeof(float));
  }
}

/// to[c][r] = from[r][c] for r < rows, c < columns.
HWY_INLINE void transpose(const float* HWY_RESTRICT from, ptrdiff_t from_stride, ptrdiff_t rows,
                          ptrdiff_t columns, float* HWY_RESTRICT to, ptrdiff_t to_stride) {
  ptrdiff_t whole = 0;  // columns done four at a time
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  whole = columns / 4 * 4;
  const ptrdiff_t whole_rows = rows / 4 * 4;
  for (ptrdiff_t c = 0; c < whole; c += 4) {
    for (ptrdiff_t r = 0; r < whole_rows; r += 4) {
      const float* p = from + r * from_stride + c;
      const auto row0 = hn::LoadU(d, p);
      const auto row1 = hn::LoadU(d, p + from_stride);
      const auto row2 = hn::LoadU(d, p + 2 * from_stride);
      const auto row3 = hn::LoadU(d, p + 3 * from_stride);
      const auto low02 = hn::InterleaveLower(d, row0, row2);
      const auto low13 = hn::InterleaveLower(d, row1, row3);
      const auto high02 = hn::InterleaveUpper(d, row0, row2);
      const auto high13 = hn::InterleaveUpper(d, row1, row3);
      float* q = to + c * to_stride + r;
      hn::StoreU(hn::InterleaveLower(d, low02, low13), d, q);
      hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, q + to_stride);
      hn::StoreU(hn::InterleaveLower(d, high02, high13), d, q + 2 * to_stride);
      hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, q + 3 * to_stride);
    }
    for (ptrdiff_t r = whole_rows; r < rows; ++r) {
      for (ptrdiff_t i = 0; i < 4; ++i) to[(c + i) * to_stride + r] = from[r * from_stride + c + i];
    }
  }
#endif
  for (ptrdiff_t c = whole; c < columns; ++c) {
    for (ptrdiff_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

/// to[lane][e] = factor·matrix[row of lane][head of lane][e], zeros in the lanes behind and up to padded_dim.
HWY_INLINE void load_block(const Matrix& matrix, const Segment& segment, const LaneBlock& block,
                           int32_t group, int32_t head_dim, float factor, float* to) {
  const F32 d;
  const size_t padded = padded_dim(head_dim);
  const auto width = static_cast<size_t>(head_dim);
  for (int32_t lane = 0; lane < kBlockLanes; ++lane) {
    float* row = to + lane * kTileStride;
    if (lane >= block.count) {
      std::memset(row, 0, padded * sizeof(float));
      continue;
    }
    const LaneAddress at = lane_address(segment, block, group, lane);
    const float* from = matrix.f32() + at.row * matrix.stride + int64_t{at.head} * head_dim;
    size_t e = 0;
    for (; e < width; e += kVectorLanes) {
      hn::StoreU(hn::Mul(load_n(from + e, width - e), hn::Set(d, factor)), d, row + e);
    }
    for (; e < padded; ++e) row[e] = 0;
  }
}

/// to[e][lane] of the same, by way of `rows`.
HWY_INLINE void load_across(const Matrix& matrix, const Segment& segment, const LaneBlock& block,
                            int32_t group, int32_t head_dim, float factor, float* rows, float* to) {
  load_block(matrix, segment, block, group, head_dim, factor, rows);
  transpose(rows, kTileStride, kBlockLanes, head_dim, to, kBlockLanes);
}

/// matrix[row of lane][head of lane][e] = from[e][lane]·factors[lane] + 0, by way of `rows`: the sum makes a
/// negative zero positive, so that a tile in which nothing was visible leaves no trace.
HWY_INLINE void store_across(const float* from, const float* factors, const Segment& segment,
                             const LaneBlock& block, int32_t group, int32_t head_dim, const Matrix& matrix,
                             float* rows) {
  const F32 d;
  const auto width = static_cast<size_t>(head_dim);
  transpose(from, kBlockLanes, head_dim, kBlockLanes, rows, kTileStride);
  for (int32_t lane = 0; lane < block.count; ++lane) {
    const LaneAddress at = lane_address(segment, block, group, lane);
    float* to = matrix.f32() + at.row * matrix.stride + int64_t{at.head} * head_dim;
    const float* row = rows + lane * kTileStride;
    const V32 factor = hn::Set(d, factors[lane]);
    for (size_t e = 0; e < width; e += kVectorLanes) {
      store_n(hn::MulAdd(load_n(row + e, width - e), factor, hn::Zero(d)), to + e, width - e);
    }
  }
}

/// The visible range of every lane; an empty one for the lanes behind.
HWY_INLINE void load_ranges(const Segment& segment, const LaneBlock& block, int32_t group, int32_t window,
                            AttentionScratch& scratch) {
  for (int32_t lane = 0; lane < kBlockLanes; ++lane) {
    const Visible seen = lane < block.count
                             ? visible(lane_address(segment, block, group, lane).position, window)
                             : Visible{0, -1};
    scratch.first[lane] = seen.first;
    scratch.last[lane] = seen.last;
  }
}

/// True where every lane sees every key of the tile (what the lanes behind see does not matter).
HWY_INLINE bool all_visible(const Segment& segment, const LaneBlock& block, int32_t group, int32_t window,
                            int32_t tile) {
  const int32_t first = segment.row_position + block.begin / group;
  const int32_t last = segment.row_position + (block.begin + block.count - 1) / group;
  return (tile + 1) * kTileKeys - 1 <= first && visible(last, window).first <= tile * kTileKeys;
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
