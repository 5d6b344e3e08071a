// Panels: a part of W decoded to f32 in the order in which the tile reads it.
//
// A panel holds groups of strips; a strip is `width` columns of the tile's B by up to kPanelDepth rows, so
// that B[k, j] is strip[k * width + j]. Columns beyond the last are zero.

#if defined(RETRO_DEVICE_CPU_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_PANEL_INL_H_
#undef RETRO_DEVICE_CPU_PANEL_INL_H_
#else
#define RETRO_DEVICE_CPU_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "device/cpu/scratch.h"
#include "device/cpu/tile-inl.h"
#include "device/op_args.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "tensor/dequantize.h"

#if HWY_TARGET != HWY_SCALAR
#include "device/cpu/decode/formats-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// A rectangle of W: rows [row, row + rows) and columns [column, column + columns). With a block format,
/// `column` is a multiple of 32 and of the block where the panel is transposed.
struct Rectangle {
  const std::byte* data;  // of W's first row
  int64_t row_bytes;
  DType dtype;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
  int64_t panel_row = 0;  // of a straight panel, where row 0 goes

  const std::byte* row_at(int64_t i) const { return data + (row + i) * row_bytes; }
};

/// Asks for the rectangle's bytes, a cache line at a time: its rows lie far apart, where the hardware does
/// not foresee them. Nothing where it has no rows.
HWY_INLINE void prefetch(const Rectangle& part) {
  const tensor::DTypeInfo& info = tensor::dtype_info(part.dtype);
  const int64_t begin = part.column / info.block_elements * info.block_bytes;
  const int64_t end =
      (part.column + part.columns + info.block_elements - 1) / info.block_elements * info.block_bytes;
  for (int64_t r = 0; r < part.rows; ++r) {
    const std::byte* row = part.row_at(r);
    for (int64_t i = begin; i < end; i += 64) hwy::Prefetch(row + i);
    hwy::Prefetch(row + end - 1);
  }
}

/// Where strip `s` of a group lies.
HWY_INLINE float* strip_at(Scratch& scratch, int64_t s) {
  return scratch.panel + s * kFullWidth * kPanelDepth;
}

/// The transposed strip, B[k, j] = W[row + j, column + k]: at most `width` rows.
using FillTransposed = void (*)(const Rectangle&, int width, float* strip, Scratch&);
/// The group of strips as W lies, B[k, j] = W[row + k, column + j]: at most kGroupColumns columns.
using FillStraight = void (*)(const Rectangle&, Scratch&);

/// How panels of a type are filled; null where the type is not known.
struct Fillers {
  DType dtype;
  FillTransposed transposed;
  FillStraight straight;
};

#if HWY_TARGET != HWY_SCALAR

/// v[i] (i < n) holds the rows of n x n blocks, one in each group of n lanes; on return the columns. Each
/// round moves the top bit of the row's number to the bottom of the column's and that of the column's to the
/// row's.
template <int kSize, class D>
HWY_INLINE void transpose_blocks(D d, hn::Vec<D> (&v)[kSize]) {
  constexpr int kRounds = kSize == 16 ? 4 : 2;
  static_assert(kSize == 1 << kRounds);
  HWY_UNROLL(4)
  for (int round = 0; round < kRounds; ++round) {
    hn::Vec<D> next[kSize];
    HWY_UNROLL(8)
    for (int i = 0; i < kSize / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, v[i], v[i + kSize / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kSize / 2]);
    }
    HWY_UNROLL(16)
    for (int i = 0; i < kSize; ++i) v[i] = next[i];
  }
}

/// 32 quants of each of 16 rows, kMaxDepth apart: element k of the rows goes to out[32 * (k % 16) + 16 * (k /
/// 16)].
HWY_INLINE void transpose_quants(const int8_t* quants, int8_t* out) {
  const hn::CappedTag<uint8_t, 32> d;
  const auto* from = reinterpret_cast<const uint8_t*>(quants);
  auto* to = reinterpret_cast<uint8_t*>(out);
  for (size_t part = 0; part < 32; part += hn::Lanes(d)) {
    hn::Vec<decltype(d)> v[kRowGroup];
    HWY_UNROLL(16)
    for (int i = 0; i < kRowGroup; ++i) v[i] = hn::LoadU(d, from + i * kMaxDepth + part);
    transpose_blocks<kRowGroup>(d, v);
    HWY_UNROLL(16)
    for (int i = 0; i < kRowGroup; ++i) hn::StoreU(v[i], d, to + 32 * i + part);
  }
}

/// Quants, scales and minima of up to 16 rows; zero for rows that are not there.
template <class Format>
HWY_INLINE void unpack_rows(const Rectangle& part, int64_t first, Scratch& scratch) {
  constexpr int kGroups = Format::kBlock / Format::kGroup;
  for (int64_t r = 0; r < kRowGroup; ++r) {
    int8_t* quants = scratch.quants + r * kMaxDepth;
    if (first + r >= part.rows) {
      std::fill_n(quants, part.columns, int8_t{0});
      for (int64_t g = 0; g < part.columns / Format::kGroup; ++g) {
        scratch.scales[g * kRowGroup + r] = 0;
        scratch.minima[g * kRowGroup + r] = 0;
      }
      continue;
    }
    const std::byte* block =
        part.row_at(first + r) + part.column / Format::kBlock * sizeof(typename Format::Block);
    for (int64_t k = 0; k < part.columns; k += Format::kBlock, block += sizeof(typename Format::Block)) {
      float scale[kGroups];
      float minimum[kGroups];
      Format::scales(block, scale, minimum);
      for (int g = 0; g < kGroups; ++g) {
        const int64_t at = (k / Format::kGroup + g) * kRowGroup + r;
        scratch.scales[at] = scale[g];
        if (Format::kMinimum) scratch.minima[at] = minimum[g];
      }
      HWY_UNROLL(8)
      for (int chunk = 0; chunk < Format::kBlock / 32; ++chunk) {
        Format::quants(block, chunk, quants + k + 32 * chunk);
      }
    }
  }
}

/// strip[k * width + i] = scale_i·q_i(k) + minimum_i of kCount rows and 32 k, from transposed quants.
template <class Format, int kCount>
HWY_INLINE void expand_transposed(const Scratch& scratch, int64_t k, int width, float* strip) {
  const hn::CappedTag<float, kCount> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::Rebind<int8_t, decltype(d)> bytes;
  constexpr size_t kLanes = hn::MaxLanes(hn::CappedTag<float, kCount>());
  for (int half = 0; half < 2; ++half) {
    const int64_t group = (k + 16 * half) / Format::kGroup * kRowGroup;
    for (size_t i = 0; i < kCount; i += kLanes) {
      const auto scale = hn::Load(d, scratch.scales + group + i);
      const auto minimum = hn::Load(d, scratch.minima + group + i);
      const int8_t* from = scratch.transposed + 16 * half + i;
      float* to = strip + (k + 16 * half) * width + i;
      HWY_UNROLL(16)
      for (int j = 0; j < 16; ++j) {
        const auto q = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(bytes, from + 32 * j)));
        auto weight = hn::Mul(scale, q);
        if constexpr (Format::kMinimum) weight = hn::Add(weight, minimum);
        hn::Store(weight, d, to + j * width);
      }
    }
  }
}

template <class Format>
void fill_transposed_blocks(const Rectangle& part, int width, float* strip, Scratch& scratch) {
  for (int64_t first = 0; first < width; first += kRowGroup) {
    unpack_rows<Format>(part, first, scratch);
    for (int64_t k = 0; k < part.columns; k += 32) {
      transpose_quants(scratch.quants + k, scratch.transposed);
      if (width >= kRowGroup) {
        expand_transposed<Format, kRowGroup>(scratch, k, width, strip + first);
      } else {
        expand_transposed<Format, 8>(scratch, k, width, strip + first);
      }
    }
  }
}

/// One row of 32 columns of a panel: `to` is the chunk's first element. A strip is kFullWidth wide.
template <class Format>
HWY_INLINE void expand_straight(const int8_t* quants, const float* scale, const float* minimum, float* to) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const hn::Rebind<int8_t, decltype(d)> bytes;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, 16>()));
  HWY_UNROLL(8)
  for (int i = 0; i < 32; i += kLanes) {
    const auto q = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(bytes, quants + i)));
    auto weight = hn::Mul(hn::Set(d, scale[i / Format::kGroup]), q);
    if constexpr (Format::kMinimum) weight = hn::Add(weight, hn::Set(d, minimum[i / Format::kGroup]));
    hn::Store(weight, d, to + i / kFullWidth * (kFullWidth * kPanelDepth) + i % kFullWidth);
  }
}

template <class Format>
void fill_straight_blocks(const Rectangle& part, Scratch& scratch) {
  constexpr int kGroups = Format::kBlock / Format::kGroup;
  constexpr int kChunks = Format::kBlock / 32;
  constexpr int64_t kBytes = sizeof(typename Format::Block);
  const int64_t first = part.column / Format::kBlock;
  const int64_t last = (part.column + part.columns + Format::kBlock - 1) / Format::kBlock;
  const int64_t begin = part.column / 32;
  const int64_t end = begin + part.columns / 32;
  for (int64_t r = 0; r < part.rows; ++r) {
    const std::byte* block = part.row_at(r) + first * kBytes;
    float* to = scratch.panel + (part.panel_row + r) * kFullWidth;
    for (int64_t b = first; b < last; ++b, block += kBytes) {
      float scale[kGroups];
      float minimum[kGroups];
      Format::scales(block, scale, minimum);
      HWY_UNROLL(8)
      for (int c = 0; c < kChunks; ++c) {
        const int64_t chunk = b * kChunks + c;
        if (kChunks > 1 && (chunk < begin || chunk >= end)) continue;
        Format::quants(block, c, scratch.quants);
        const int group = 32 * c / Format::kGroup;
        expand_straight<Format>(scratch.quants, scale + group, minimum + group, to);
        to += 32 * kPanelDepth;
      }
    }
  }
}

template <class Format>
void fill_transposed_plain(const Rectangle& part, int width, float* strip, Scratch& scratch) {
  const hn::FixedTag<float, 4> d;
  const int64_t depth = (part.columns + 3) / 4 * 4;
  for (int64_t first = 0; first < width; first += kRowGroup) {
    const int64_t count = std::min<int64_t>(kRowGroup, width - first);
    for (int64_t r = 0; r < count; ++r) {
      float* values = scratch.values + r * kMaxDepth;
      const bool there = first + r < part.rows;
      if (there) Format::values(part.row_at(first + r), part.column, part.columns, values);
      std::fill(values + (there ? part.columns : 0), values + depth, 0.0F);
    }
    for (int64_t r = 0; r < count; r += 4) {
      for (int64_t k = 0; k < depth; k += 4) {
        hn::Vec<decltype(d)> v[4];
        for (int i = 0; i < 4; ++i) v[i] = hn::Load(d, scratch.values + (r + i) * kMaxDepth + k);
        transpose_blocks<4>(d, v);
        for (int i = 0; i < 4; ++i) hn::Store(v[i], d, strip + (k + i) * width + first + r);
      }
    }
  }
}

/// Rows outside: they may be pages apart.
template <class Format>
void fill_straight_plain(const Rectangle& part, Scratch& scratch) {
  const int64_t full = part.columns / kFullWidth;
  const int64_t rest = part.columns % kFullWidth;
  const int width = width_for(rest);
  for (int64_t r = 0; r < part.rows; ++r) {
    const std::byte* row = part.row_at(r);
    for (int64_t s = 0; s < full; ++s) {
      Format::values(row, part.column + s * kFullWidth, kFullWidth,
                     strip_at(scratch, s) + (part.panel_row + r) * kFullWidth);
    }
    if (rest == 0) continue;
    float* to = strip_at(scratch, full) + (part.panel_row + r) * width;
    Format::values(row, part.column + full * kFullWidth, rest, to);
    std::fill(to + rest, to + width, 0.0F);
  }
}

template <class Format>
constexpr Fillers of_plain(DType dtype) {
  return {dtype, &fill_transposed_plain<Format>, &fill_straight_plain<Format>};
}

template <class Format>
constexpr Fillers of_blocks(DType dtype) {
  return {dtype, &fill_transposed_blocks<Format>, &fill_straight_blocks<Format>};
}

constexpr Fillers kFillers[] = {
    of_plain<PlainF32>(DType::F32),     of_plain<PlainF16>(DType::F16),   of_plain<PlainBF16>(DType::BF16),
    of_blocks<Q4_0>(DType::Q4_0),       of_blocks<Q4_1>(DType::Q4_1),     of_blocks<Q5_0>(DType::Q5_0),
    of_blocks<Q5_1>(DType::Q5_1),       of_blocks<Q8_0>(DType::Q8_0),     of_blocks<Q2_K>(DType::Q2_K),
    of_blocks<Q3_K>(DType::Q3_K),       of_blocks<Q4_K>(DType::Q4_K),     of_blocks<Q5_K>(DType::Q5_K),
    of_blocks<Q6_K>(DType::Q6_K),       of_blocks<Q1_0>(DType::Q1_0),     of_blocks<Q2_0>(DType::Q2_0),
    of_blocks<TQ1_0>(DType::TQ1_0),     of_blocks<TQ2_0>(DType::TQ2_0),   of_blocks<IQ4_NL>(DType::IQ4_NL),
    of_blocks<IQ4_XS>(DType::IQ4_XS),   of_blocks<MXFP4>(DType::MXFP4),   of_blocks<NVFP4>(DType::NVFP4),
    of_blocks<IQ2_XXS>(DType::IQ2_XXS), of_blocks<IQ2_XS>(DType::IQ2_XS), of_blocks<IQ2_S>(DType::IQ2_S),
    of_blocks<IQ3_XXS>(DType::IQ3_XXS), of_blocks<IQ3_S>(DType::IQ3_S),   of_blocks<IQ1_S>(DType::IQ1_S),
    of_blocks<IQ1_M>(DType::IQ1_M),
};

HWY_INLINE Fillers fillers(DType dtype) {
  const auto* found = std::ranges::find(kFillers, dtype, &Fillers::dtype);
  return found == std::end(kFillers) ? Fillers{dtype, nullptr, nullptr} : *found;
}

#else  // HWY_SCALAR: never run, so as simple as can be

/// W[row, column].
HWY_INLINE float weight_at(const Rectangle& part, int64_t row, int64_t column) {
  float block[256];
  const tensor::DTypeInfo& info = tensor::dtype_info(part.dtype);
  tensor::dequantize_row(part.dtype, part.row_at(row) + column / info.block_elements * info.block_bytes,
                         block, info.block_elements);
  return block[column % info.block_elements];
}

inline void fill_transposed_any(const Rectangle& part, int width, float* strip, Scratch&) {
  for (int64_t k = 0; k < part.columns; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      strip[k * width + j] = j < part.rows ? weight_at(part, j, part.column + k) : 0;
    }
  }
}

inline void fill_straight_any(const Rectangle& part, Scratch& scratch) {
  for (int64_t column = 0, s = 0; column < part.columns; column += kFullWidth, ++s) {
    const int64_t columns = std::min<int64_t>(kFullWidth, part.columns - column);
    const int width = width_for(columns);
    for (int64_t r = 0; r < part.rows; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        strip_at(scratch, s)[(part.panel_row + r) * width + j] =
            j < columns ? weight_at(part, r, part.column + column + j) : 0;
      }
    }
  }
}

HWY_INLINE Fillers fillers(DType dtype) {
  if (!tensor::dtype_info(dtype).decodable) return {dtype, nullptr, nullptr};
  return {dtype, &fill_transposed_any, &fill_straight_any};
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
