#include "device/cpu/fast_product.h"

// VNNI, which sums four products of bytes at once.
#define HWY_WANT_AVX3_DL
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/fast_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <iterator>

#include "device/cpu/product.h"
#include "device/cpu/scratch.h"
#include "tensor/dtype.h"

#if HWY_TARGET != HWY_SCALAR
#include "device/cpu/panel8-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

inline const char* fast_target_name() {
  return hwy::TargetName(HWY_TARGET);
}

#if HWY_TARGET != HWY_SCALAR

inline int64_t tile8_rows() {
  return kTile8Rows;
}

/// What a type's products are made of.
struct Kernel8 {
  DType dtype;
  void (*unpack)(const Strip8&, Panel8&);
  const Tile8Function* tiles;  // of 1, 2, … rows
};

template <class Format>
constexpr Kernel8 kernel_of(DType dtype) {
  return {dtype, &unpack_strip<Format>, kTiles8<KindOf<Format>>.data()};
}

constexpr Kernel8 kKernels8[] = {
    kernel_of<Q4_0>(DType::Q4_0),       kernel_of<Q4_1>(DType::Q4_1),     kernel_of<Q5_0>(DType::Q5_0),
    kernel_of<Q5_1>(DType::Q5_1),       kernel_of<Q8_0>(DType::Q8_0),     kernel_of<Q2_K>(DType::Q2_K),
    kernel_of<Q3_K>(DType::Q3_K),       kernel_of<Q4_K>(DType::Q4_K),     kernel_of<Q5_K>(DType::Q5_K),
    kernel_of<Q6_K>(DType::Q6_K),       kernel_of<Q1_0>(DType::Q1_0),     kernel_of<Q2_0>(DType::Q2_0),
    kernel_of<TQ1_0>(DType::TQ1_0),     kernel_of<TQ2_0>(DType::TQ2_0),   kernel_of<IQ4_NL>(DType::IQ4_NL),
    kernel_of<IQ4_XS>(DType::IQ4_XS),   kernel_of<MXFP4>(DType::MXFP4),   kernel_of<NVFP4>(DType::NVFP4),
    kernel_of<IQ2_XXS>(DType::IQ2_XXS), kernel_of<IQ2_XS>(DType::IQ2_XS), kernel_of<IQ2_S>(DType::IQ2_S),
    kernel_of<IQ3_XXS>(DType::IQ3_XXS), kernel_of<IQ3_S>(DType::IQ3_S),   kernel_of<IQ1_S>(DType::IQ1_S),
    kernel_of<IQ1_M>(DType::IQ1_M),
};

/// Equal blocks of at most `most`, whole blocks of the type.
HWY_INLINE int64_t block_depth8(int64_t depth, int64_t unit, int64_t most) {
  const int64_t blocks = (depth + most - 1) / most;
  const int64_t even = (depth + blocks - 1) / blocks;
  return std::min<int64_t>((even + unit - 1) / unit * unit, most / unit * unit);
}

/// Rows of the output from a panel, of which the first `columns` outputs are wanted.
HWY_INLINE void run_tiles8(Tile8Args args, const Tile8Function* tiles, int64_t rows, int64_t columns,
                           float* edge) {
  const int64_t count = (rows + kTile8Rows - 1) / kTile8Rows;
  float* y = args.y;
  const int64_t y_row = args.y_row;
  const QuantizedGroup* x = args.x;
  for (int64_t t = 0; t < count; ++t) {
    const int64_t row = rows * t / count;
    const int64_t height = rows * (t + 1) / count - row;
    args.x = x + row * args.x_row;
    args.y = y + row * y_row;
    if (columns == kStrip8) {
      tiles[height - 1](args);
      continue;
    }
    float* to = args.y;
    args.y = edge;
    args.y_row = kStrip8;
    if (args.accumulate) {
      for (int64_t i = 0; i < height; ++i) {
        std::copy_n(to + i * y_row, columns, edge + i * kStrip8);
        std::fill(edge + i * kStrip8 + columns, edge + (i + 1) * kStrip8, 0.0F);
      }
    }
    tiles[height - 1](args);
    for (int64_t i = 0; i < height; ++i) std::copy_n(edge + i * kStrip8, columns, to + i * y_row);
    args.y_row = y_row;
  }
}

/// A rectangle of W, and the one that will be asked for then.
struct Window8 {
  const std::byte* data;
  const std::byte* next;  // null for none
  int64_t row_bytes;
  int64_t rows;
  int64_t columns;
};

/// Adds the products with a window's columns to y; `tile` is that of its first column and row.
void run_window8(const Kernel8& kernel, const Window8& window, Tile8Args tile, int64_t rows, Panel8& panel) {
  // A panel that few rows read is made small, so that it stays in L1 together with W as it lies.
  constexpr int64_t kFewRows = 8;
  constexpr int64_t kSmallDepth = 256;
  const bool few = rows <= kFewRows;
  const tensor::DTypeInfo& info = tensor::dtype_info(kernel.dtype);
  const auto bytes_of = [&](int64_t columns) { return columns / info.block_elements * info.block_bytes; };
  const int64_t bytes = bytes_of(window.columns);
  if (few) touch_rows(window.data, window.row_bytes, bytes, window.rows);
  const int64_t depth = few ? block_depth8(window.columns, info.block_elements, kSmallDepth) : window.columns;
  for (int64_t k = 0; k < window.columns; k += depth) {
    const int64_t columns = std::min(depth, window.columns - k);
    if (window.next != nullptr) {
      prefetch_rows(window.next, window.row_bytes, bytes, kStrip8 * k / window.columns,
                    kStrip8 * (k + columns) / window.columns);
    }
    kernel.unpack({window.data + bytes_of(k), window.row_bytes, window.rows, columns}, panel);
    tile.groups = columns / QuantizedGroup::kSize;
    run_tiles8(tile, kernel.tiles, rows, window.rows, panel.edge);
    tile.x += tile.groups;
    tile.accumulate = true;
  }
}

void product8_part(const Matrix& x8, const Weight& w, const Matrix& y, const OutputPart& output,
                   Scratch& scratch) {
  const Kernel8& kernel = *std::ranges::find(kKernels8, w.dtype, &Kernel8::dtype);
  const tensor::DTypeInfo& info = tensor::dtype_info(w.dtype);
  const int64_t depth = block_depth8(w.cols, info.block_elements, kDepth8);
  const int64_t row_bytes = tensor::row_bytes(w.dtype, w.cols);
  const auto* data = static_cast<const std::byte*>(w.data);
  const auto at = [&](int64_t column, int64_t k) {
    return data + column * row_bytes + k / info.block_elements * info.block_bytes;
  };
  const int64_t x_row =
      x8.stride * static_cast<int64_t>(sizeof(float)) / static_cast<int64_t>(sizeof(QuantizedGroup));
  const auto* x = static_cast<const QuantizedGroup*>(x8.data) + output.row_begin * x_row;
  for (int64_t column = output.column_begin; column < output.column_end; column += kStrip8) {
    const int64_t columns = std::min<int64_t>(kStrip8, output.column_end - column);
    for (int64_t k = 0; k < w.cols; k += depth) {
      Window8 window = {at(column, k), nullptr, row_bytes, columns, std::min(depth, w.cols - k)};
      if (k + 2 * depth <= w.cols && columns == kStrip8) {
        window.next = at(column, k + depth);
      } else if (k + depth >= w.cols && column + 2 * kStrip8 <= output.column_end) {
        window.next = at(column + kStrip8, 0);
      }
      Tile8Args tile = {};
      tile.x = x + k / QuantizedGroup::kSize;
      tile.x_row = x_row;
      tile.panel = &scratch.panel8;
      tile.y = y.f32() + output.row_begin * y.stride + column;
      tile.y_row = y.stride;
      tile.accumulate = k > 0;
      run_window8(kernel, window, tile, output.row_end - output.row_begin, scratch.panel8);
    }
  }
}

#else  // HWY_SCALAR: never run

inline int64_t tile8_rows() {
  return 1;
}

inline void product8_part(const Matrix&, const Weight&, const Matrix&, const OutputPart&, Scratch&) {}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "device/cpu/output_grid.h"

namespace retro::device::cpu {

HWY_EXPORT(fast_target_name);
HWY_EXPORT(tile8_rows);
HWY_EXPORT(product8_part);

const char* fast_instruction_set() {
  return HWY_DYNAMIC_DISPATCH(fast_target_name)();
}

void fast_product(const Matrix& x, const Matrix& x8, int64_t rows, const Weight& w, const Matrix& y,
                  Workspace& workspace) noexcept {
  if (x8.data == nullptr) {
    plain_product(x, rows, w, y, workspace);
    return;
  }
  // Unpacking a strip takes as long as so many rows of the product.
  constexpr int64_t kUnpackRows = 8;
  const auto run = HWY_DYNAMIC_DISPATCH(product8_part);
  over_output(rows, w.rows, {HWY_DYNAMIC_DISPATCH(tile8_rows)(), kUnpackRows}, workspace,
              [&](const OutputPart& output, Scratch& scratch) { run(x8, w, y, output, scratch); });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
