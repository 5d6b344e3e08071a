// The three products over panels: Y = X·Wᵀ, dX = dY·W, C = Aᵀ·B; each for a rectangle of the output.

#if defined(RETRO_DEVICE_CPU_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_LINEAR_INL_H_
#undef RETRO_DEVICE_CPU_LINEAR_INL_H_
#else
#define RETRO_DEVICE_CPU_LINEAR_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "device/cpu/panel-inl.h"
#include "device/cpu/product.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

inline const char* target_name() {
  return hwy::TargetName(HWY_TARGET);
}

inline TileShape tile_shape() {
  return {kFullRows, kFullWidth};
}

/// Equal blocks of at most kMaxDepth, multiples of `unit`: a short last block would cost as much as a long
/// one.
HWY_INLINE int64_t block_depth(int64_t depth, int64_t unit) {
  const int64_t blocks = (depth + kMaxDepth - 1) / kMaxDepth;
  const int64_t even = (depth + blocks - 1) / std::max<int64_t>(blocks, 1);
  const int64_t rounded = (even + unit - 1) / unit * unit;
  return std::min<int64_t>(rounded, kMaxDepth / unit * unit);
}

/// Rows of A that are a multiple of 4 KiB apart share a set of the L1 cache, which has fewer ways than a tile
/// has rows.
HWY_INLINE bool rows_collide(const TileArgs& tile) {
  return tile.a_row % 1024 == 0 && tile.a_step == 1;
}

/// Puts `count` rows of A side by side.
HWY_INLINE void gather_rows(TileArgs& tile, int count, Scratch& scratch) {
  for (int i = 0; i < count; ++i)
    std::copy_n(tile.a + i * tile.a_row, tile.depth, scratch.rows + i * kRowStride);
  tile.a = scratch.rows;
  tile.a_row = kRowStride;
}

/// C[rows, columns] (+)= A·B for strips [column, end) of the group in `scratch`, all `width` wide; `tile` is
/// that of the group's first element.
HWY_INLINE void run_strips(const TileArgs& tile, int64_t rows, int64_t column, int64_t end, int width,
                           Scratch& scratch) {
  const int64_t tiles = (rows + tile_rows_for(width) - 1) / tile_rows_for(width);
  const bool gather = rows_collide(tile) && end - column > width;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t row = rows * t / tiles;
    const int count = static_cast<int>(rows * (t + 1) / tiles - row);
    TileArgs args = tile;
    args.a = tile.a + row * tile.a_row;
    args.b_step = width;
    if (gather) gather_rows(args, count, scratch);
    for (int64_t at = column; at < end; at += width) {
      args.b = strip_at(scratch, at / kFullWidth);
      args.c = tile.c + row * tile.c_row + at;
      run_tile(args, count, width, std::min<int64_t>(width, end - at), scratch.edge);
    }
  }
}

/// C[rows, columns] (+)= A·B for all strips of the group.
HWY_INLINE void run_group(const TileArgs& tile, int64_t rows, int64_t columns, Scratch& scratch) {
  // Full strips go together, so that rows of A stay near while the strips pass.
  const int64_t full = columns / kFullWidth * kFullWidth;
  if (full > 0) run_strips(tile, rows, 0, full, kFullWidth, scratch);
  if (full < columns) run_strips(tile, rows, full, columns, width_for(columns - full), scratch);
}

inline Rectangle whole(const Weight& w) {
  return {static_cast<const std::byte*>(w.data), tensor::row_bytes(w.dtype, w.cols), w.dtype, 0, 0, 0, 0};
}

/// The tile at the first element of the output part's columns from `column` and block k of the sum.
HWY_INLINE TileArgs first_tile(const ProductArgs& product, const OutputPart& output, int64_t column,
                               int64_t k, int64_t depth) {
  TileArgs tile = {};
  tile.a = product.a + output.row_begin * product.lda + k;
  tile.a_row = product.lda;
  tile.a_step = 1;
  tile.depth = depth;
  tile.c = product.c + output.row_begin * product.ldc + column;
  tile.c_row = product.ldc;
  tile.accumulate = product.accumulate || k > 0;
  return tile;
}

/// C[row, column] of X·Wᵀ for the part's rows of X and rows of W.
inline void product_nt_part(const ProductArgs& product, const OutputPart& output, Scratch& scratch) {
  const FillTransposed fill = transposed_filler(product.w.dtype);
  const int64_t block = std::max<int64_t>(32, tensor::dtype_info(product.w.dtype).block_elements);
  const int64_t depth = block_depth(product.w.cols, block);
  for (int64_t column = output.column_begin; column < output.column_end; column += kGroupColumns) {
    const int64_t columns = std::min<int64_t>(kGroupColumns, output.column_end - column);
    for (int64_t k = 0; k < product.w.cols; k += depth) {
      Rectangle part = whole(product.w);
      part.column = k;
      part.columns = std::min(depth, product.w.cols - k);
      for (int64_t at = 0; at < columns; at += kFullWidth) {
        part.row = column + at;
        part.rows = std::min<int64_t>(kFullWidth, columns - at);
        fill(part, width_for(part.rows), strip_at(scratch, at / kFullWidth), scratch);
      }
      Rectangle next = whole(product.w);
      const bool last = k + depth >= product.w.cols;
      next.row = last ? column + columns : column;
      next.rows = last ? std::min<int64_t>(kGroupColumns, output.column_end - next.row) : columns;
      next.column = last ? 0 : k + depth;
      next.columns = std::min(depth, product.w.cols - next.column);
      prefetch(next);
      run_group(first_tile(product, output, column, k, part.columns), output.row_end - output.row_begin,
                columns, scratch);
    }
  }
}

/// C[row, column] of dY·W for the part's rows of dY and columns of W. Blocks of W's rows go outside, so that
/// W is read once from memory.
inline void product_nn_part(const ProductArgs& product, const OutputPart& output, Scratch& scratch) {
  const FillStraight fill = straight_filler(product.w.dtype);
  const int64_t depth = block_depth(product.w.rows, 1);
  for (int64_t k = 0; k < product.w.rows; k += depth) {
    Rectangle part = whole(product.w);
    part.row = k;
    part.rows = std::min(depth, product.w.rows - k);
    for (int64_t column = output.column_begin; column < output.column_end; column += kGroupColumns) {
      part.column = column;
      part.columns = std::min<int64_t>(kGroupColumns, output.column_end - column);
      fill(part, scratch);
      Rectangle next = part;
      next.row = k + depth;
      next.rows = std::min(depth, product.w.rows - next.row);
      prefetch(next);
      run_group(first_tile(product, output, column, k, part.rows), output.row_end - output.row_begin,
                part.columns, scratch);
    }
  }
}

/// The part's columns of C += Aᵀ·B. B is read as it lies but for the last columns, which a tile would
/// overrun.
inline void product_tn_part(const TransposedArgs& product, const OutputPart& output, Scratch& scratch) {
  for (int64_t column = output.column_begin; column < output.column_end; column += kFullWidth) {
    const int64_t columns = std::min<int64_t>(kFullWidth, output.column_end - column);
    const int width = width_for(columns);
    const bool direct = columns == width;
    const int64_t depth = direct ? product.rows : kMaxDepth;
    const int64_t tiles = (product.a_cols + tile_rows_for(width) - 1) / tile_rows_for(width);
    for (int64_t k = 0; k < product.rows; k += depth) {
      TileArgs tile = {};
      tile.a_row = 1;
      tile.a_step = product.lda;
      tile.b = product.b + k * product.ldb + column;
      tile.b_step = product.ldb;
      tile.depth = std::min(depth, product.rows - k);
      tile.c_row = product.ldc;
      tile.accumulate = true;
      if (!direct) {
        for (int64_t i = 0; i < tile.depth; ++i) {
          float* to = scratch.panel + i * width;
          std::copy_n(tile.b + i * product.ldb, columns, to);
          std::fill(to + columns, to + width, 0.0F);
        }
        tile.b = scratch.panel;
        tile.b_step = width;
      }
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t row = product.a_cols * t / tiles;
        const int count = static_cast<int>(product.a_cols * (t + 1) / tiles - row);
        tile.a = product.a + k * product.lda + row;
        tile.c = product.c + row * product.ldc + column;
        run_tile(tile, count, width, columns, scratch.edge);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
