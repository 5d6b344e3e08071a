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

inline bool has_decoder(DType dtype) {
  return fillers(dtype).straight != nullptr;
}

inline int64_t tile_rows() {
  return kFullRows;
}

/// Equal blocks of at most kMaxDepth, multiples of `unit`: a short last block would cost as much as a long
/// one.
HWY_INLINE int64_t block_depth(int64_t depth, int64_t unit) {
  const int64_t blocks = (depth + kMaxDepth - 1) / kMaxDepth;
  const int64_t even = (depth + blocks - 1) / std::max<int64_t>(blocks, 1);
  const int64_t rounded = (even + unit - 1) / unit * unit;
  return std::min<int64_t>(rounded, kMaxDepth / unit * unit);
}

/// C[rows, columns] (+)= A·B for strips [column, end) of the group in `scratch`, all `width` wide; `tile` is
/// that of the group's first element.
HWY_INLINE void run_strips(const TileArgs& tile, int64_t rows, int64_t column, int64_t end, int width,
                           Scratch& scratch) {
  const int64_t tiles = (rows + tile_rows_for(width) - 1) / tile_rows_for(width);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t row = rows * t / tiles;
    const int count = static_cast<int>(rows * (t + 1) / tiles - row);
    TileArgs args = tile;
    args.a = tile.a + row * tile.a_row;
    args.tail_a = tile.tail_a + row * tile.tail_row;
    args.b_step = width;
    int64_t at = column;
    if (rows == 1 && width == kFullWidth) {
      for (; at + kLoneStrips * width <= end; at += kLoneStrips * width) {
        args.b = strip_at(scratch, at / width);
        args.c = tile.c + at;
        lone_row_tile(args, kFullWidth * kPanelDepth);
      }
    }
    for (; at < end; at += width) {
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

/// A block of the sum for some rows of A.
struct Block {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t depth = 0;
  const float* a = nullptr;  // of the first row and k
  int64_t a_row = 0;
};

HWY_INLINE Block block_in_place(const ProductArgs& product, int64_t row, int64_t rows, int64_t k,
                                int64_t depth) {
  return {row, rows, k, depth, product.a + row * product.lda + k, product.lda};
}

/// Rows of A that are a multiple of 4 KiB apart share a set of the caches, which have fewer ways than a tile
/// has rows: where several strips use them they are put side by side first.
HWY_INLINE bool should_gather(const ProductArgs& product, const OutputPart& output) {
  return product.lda % 1024 == 0 && output.column_end - output.column_begin > kFullWidth &&
         output.row_end - output.row_begin > 1;
}

HWY_INLINE Block gathered(const Block& block, Scratch& scratch) {
  for (int64_t i = 0; i < block.rows; ++i) {
    std::copy_n(block.a + i * block.a_row, block.depth, scratch.rows + i * kRowStride);
  }
  Block result = block;
  result.a = scratch.rows;
  result.a_row = kRowStride;
  return result;
}

/// Runs the block over the group of columns that is in the panel; the last one of the sum with the tail.
HWY_INLINE void run_block(const ProductArgs& product, const Block& block, bool last, int64_t column,
                          int64_t columns, Scratch& scratch) {
  TileArgs tile = {};
  tile.a = block.a;
  tile.a_row = block.a_row;
  tile.a_step = 1;
  tile.depth = block.depth;
  tile.c = product.c + block.row * product.ldc + column;
  tile.c_row = product.ldc;
  tile.accumulate = product.accumulate || block.k > 0;
  const Tail& tail = product.tail;
  if (last && tail.there()) {
    tile.tail_a = tail.a + block.row * tail.lda;
    tile.tail_row = tail.lda;
    tile.tail_depth = tail.w.rows;
    Rectangle part = whole(tail.w);
    part.rows = tail.w.rows;
    part.column = column;
    part.columns = columns;
    part.panel_row = block.depth;
    fillers(tail.w.dtype).straight(part, scratch);
  }
  run_group(tile, block.rows, columns, scratch);
}

/// Columns [column, column + columns) of X·Wᵀ for one block; `next` is the part of W that will be asked for
/// then.
HWY_INLINE void nt_block(const ProductArgs& product, const Block& block, int64_t column, int64_t columns,
                         const Rectangle& next, Scratch& scratch) {
  const FillTransposed fill = fillers(product.w.dtype).transposed;
  Rectangle part = whole(product.w);
  part.column = block.k;
  part.columns = block.depth;
  for (int64_t at = 0; at < columns; at += kFullWidth) {
    part.row = column + at;
    part.rows = std::min<int64_t>(kFullWidth, columns - at);
    fill(part, width_for(part.rows), strip_at(scratch, at / kFullWidth), scratch);
  }
  prefetch(next);
  run_block(product, block, block.k + block.depth == product.w.cols, column, columns, scratch);
}

/// The rectangle of W for columns [column, …) of the output and block k of the sum; empty beyond the output.
HWY_INLINE Rectangle nt_rectangle(const ProductArgs& product, const OutputPart& output, int64_t column,
                                  int64_t k, int64_t depth) {
  Rectangle part = whole(product.w);
  part.row = column;
  part.rows = std::min<int64_t>(kGroupColumns, output.column_end - column);
  part.column = k;
  part.columns = std::min(depth, product.w.cols - k);
  return part;
}

/// C[row, column] of X·Wᵀ for the part's rows of X and rows of W.
inline void product_nt_part(const ProductArgs& product, const OutputPart& output, Scratch& scratch) {
  const int64_t unit = std::max<int64_t>(32, tensor::dtype_info(product.w.dtype).block_elements);
  const int64_t depth = block_depth(product.w.cols, unit);
  const auto columns_at = [&](int64_t column) {
    return std::min<int64_t>(kGroupColumns, output.column_end - column);
  };
  if (!should_gather(product, output)) {
    // The sum inside: what it adds to stays in the L2 cache.
    const int64_t rows = output.row_end - output.row_begin;
    for (int64_t column = output.column_begin; column < output.column_end; column += kGroupColumns) {
      for (int64_t k = 0; k < product.w.cols; k += depth) {
        const Block block =
            block_in_place(product, output.row_begin, rows, k, std::min(depth, product.w.cols - k));
        const bool last = k + depth >= product.w.cols;
        const Rectangle next = last ? nt_rectangle(product, output, column + kGroupColumns, 0, depth)
                                    : nt_rectangle(product, output, column, k + depth, depth);
        nt_block(product, block, column, columns_at(column), next, scratch);
      }
    }
    return;
  }
  for (int64_t row = output.row_begin; row < output.row_end; row += kGatherRows) {
    const int64_t rows = std::min<int64_t>(kGatherRows, output.row_end - row);
    for (int64_t k = 0; k < product.w.cols; k += depth) {
      const Block block =
          gathered(block_in_place(product, row, rows, k, std::min(depth, product.w.cols - k)), scratch);
      for (int64_t column = output.column_begin; column < output.column_end; column += kGroupColumns) {
        const bool last = column + kGroupColumns >= output.column_end;
        const Rectangle next = last ? nt_rectangle(product, output, output.column_begin, k + depth, depth)
                                    : nt_rectangle(product, output, column + kGroupColumns, k, depth);
        nt_block(product, block, column, columns_at(column), next, scratch);
      }
    }
  }
}

/// C[row, column] of dY·W for the part's rows of dY and columns of W. Blocks of W's rows go outside, so that
/// W is read once from memory.
inline void product_nn_part(const ProductArgs& product, const OutputPart& output, Scratch& scratch) {
  const FillStraight fill = fillers(product.w.dtype).straight;
  const int64_t depth = block_depth(product.w.rows, 1);
  const bool gather = should_gather(product, output);
  const int64_t most_rows = gather ? kGatherRows : output.row_end - output.row_begin;
  for (int64_t row = output.row_begin; row < output.row_end; row += most_rows) {
    const int64_t rows = std::min(most_rows, output.row_end - row);
    for (int64_t k = 0; k < product.w.rows; k += depth) {
      Block block = block_in_place(product, row, rows, k, std::min(depth, product.w.rows - k));
      if (gather) block = gathered(block, scratch);
      Rectangle part = whole(product.w);
      part.row = k;
      part.rows = block.depth;
      for (int64_t column = output.column_begin; column < output.column_end; column += kGroupColumns) {
        part.column = column;
        part.columns = std::min<int64_t>(kGroupColumns, output.column_end - column);
        fill(part, scratch);
        Rectangle next = part;
        next.row = k + depth;
        next.rows = std::min(depth, product.w.rows - next.row);
        prefetch(next);
        run_block(product, block, block.k + block.depth == product.w.rows, column, part.columns, scratch);
      }
    }
  }
}

/// Columns [column, end) of C += Aᵀ·B, full strips of them, with B as it lies.
HWY_INLINE void tn_in_place(const TransposedArgs& product, int64_t column, int64_t end, Scratch& scratch) {
  const int64_t tiles = (product.a_cols + kFullRows - 1) / kFullRows;
  for (; column < end; column += kFullWidth) {
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = product.a_cols * t / tiles;
      const int count = static_cast<int>(product.a_cols * (t + 1) / tiles - row);
      const TileArgs tile = {product.a + row,
                             1,
                             product.lda,
                             product.b + column,
                             product.ldb,
                             product.rows,
                             product.c + row * product.ldc + column,
                             product.ldc,
                             true};
      run_tile(tile, count, kFullWidth, kFullWidth, scratch.edge);
    }
  }
}

/// Columns [column, end) of C += Aᵀ·B, at most a group of them, with a copy of B.
HWY_INLINE void tn_by_panel(const TransposedArgs& product, int64_t column, int64_t end, Scratch& scratch) {
  const int64_t row_bytes = product.ldb * static_cast<int64_t>(sizeof(float));
  Rectangle part = {
      reinterpret_cast<const std::byte*>(product.b), row_bytes, DType::F32, 0, 0, column, end - column};
  for (int64_t k = 0; k < product.rows; k += kMaxDepth) {
    part.row = k;
    part.rows = std::min<int64_t>(kMaxDepth, product.rows - k);
    fillers(DType::F32).straight(part, scratch);
    TileArgs tile = {};
    tile.a = product.a + k * product.lda;
    tile.a_row = 1;
    tile.a_step = product.lda;
    tile.depth = part.rows;
    tile.c = product.c + column;
    tile.c_row = product.ldc;
    tile.accumulate = true;
    run_group(tile, product.a_cols, end - column, scratch);
  }
}

/// The part's columns of C += Aᵀ·B. B is read as it lies, but for the last columns, which a tile would
/// overrun, and where its rows share a cache set.
inline void product_tn_part(const TransposedArgs& product, const OutputPart& output, Scratch& scratch) {
  const int64_t columns = output.column_end - output.column_begin;
  const int64_t in_place = product.ldb % 1024 == 0 ? 0 : columns / kFullWidth * kFullWidth;
  tn_in_place(product, output.column_begin, output.column_begin + in_place, scratch);
  for (int64_t column = output.column_begin + in_place; column < output.column_end; column += kGroupColumns) {
    tn_by_panel(product, column, std::min<int64_t>(output.column_end, column + kGroupColumns), scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
