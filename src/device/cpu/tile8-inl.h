// The tile of 8-bit products: C[rows, 32] (+)= X8[rows, depth] · a panel's strip.
//
// A strip holds 32 outputs. Its quants lie in steps of 4 weights of each: 128 bytes, those of output j from
// 4j on.

#if defined(RETRO_DEVICE_CPU_TILE8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_TILE8_INL_H_
#undef RETRO_DEVICE_CPU_TILE8_INL_H_
#else
#define RETRO_DEVICE_CPU_TILE8_INL_H_
#endif

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "device/cpu/dot4-inl.h"
#include "device/cpu/scratch.h"
#include "device/op_args.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

constexpr int kTile8Vectors = 2;
constexpr int kTile8Columns = kTile8Vectors * kDotLanes;
// Of each row and vector there are a sum of integers and one of floats: 24 of 32 registers, 8 of 16.
constexpr int kTile8Rows = HWY_TARGET <= HWY_AVX3 ? 6 : 2;

/// How a type's weights are: d·q with signed q, or d·q + m with q from 0 on; d (and m) for 32 or 16 weights.
template <bool kWithMinimum, int kPerGroup>
struct WeightKind {
  static constexpr bool kMinimum = kWithMinimum;
  static constexpr int kGroup = kPerGroup;
};

struct Tile8Args {
  const QuantizedGroup* x;
  int64_t x_row;  // groups from one row to the next
  const Panel8* panel;
  int64_t groups;  // of 32
  float* y;
  int64_t y_row;
  bool accumulate;
};

HWY_INLINE DotSum four_of(const int8_t* values) {
  int32_t word;
  std::memcpy(&word, values, sizeof(word));
  return hn::Set(DotLanes(), word);
}

/// Columns [column, column + kTile8Columns) of the strip.
template <class Kind, int kRows>
HWY_INLINE void tile8_columns(const Tile8Args& args, int64_t column) {
  const hn::RebindToFloat<DotLanes> d;
  const DotLanes di;
  constexpr int kHalves = QuantizedGroup::kSize / Kind::kGroup;
  constexpr int kSteps = Kind::kGroup / 4;
  hn::Vec<decltype(d)> sum[kRows][kTile8Vectors];
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(16)
    for (int v = 0; v < kTile8Vectors; ++v) {
      sum[r][v] =
          args.accumulate ? hn::LoadU(d, args.y + r * args.y_row + column + v * kDotLanes) : hn::Zero(d);
    }
  }
  const QuantizedGroup* x = args.x;
  const int64_t x_row = args.x_row;
  const int8_t* quants = args.panel->quants + 4 * column;
  const float* scales = args.panel->scales + column;
  const float* minima = args.panel->minima + column;
  for (int64_t g = 0; g < args.groups; ++g, ++x) {
    HWY_UNROLL(2)
    for (int half = 0; half < kHalves; ++half) {
      DotSum dot[kRows][kTile8Vectors];
      HWY_UNROLL(16)
      for (int r = 0; r < kRows; ++r) {
        const QuantizedGroup& from = x[r * x_row];
        auto start = hn::Zero(di);
        if constexpr (kBiased && !Kind::kMinimum) {
          start = hn::Set(di, kHalves == 1 ? from.offset : from.half_offsets[half]);
        }
        HWY_UNROLL(16)
        for (int v = 0; v < kTile8Vectors; ++v) dot[r][v] = start;
      }
      HWY_UNROLL(8)
      for (int s = 0; s < kSteps; ++s, quants += kStep8Bytes) {
        DotWeights w[kTile8Vectors];
        HWY_UNROLL(16)
        for (int v = 0; v < kTile8Vectors; ++v) w[v] = dot_weights(quants + 4 * v * kDotLanes);
        HWY_UNROLL(16)
        for (int r = 0; r < kRows; ++r) {
          const DotSum a = four_of(x[r * x_row].values + half * Kind::kGroup + 4 * s);
          HWY_UNROLL(16)
          for (int v = 0; v < kTile8Vectors; ++v) dot[r][v] = dot4(dot[r][v], w[v], a);
        }
      }
      HWY_UNROLL(16)
      for (int v = 0; v < kTile8Vectors; ++v) {
        const auto scale = hn::LoadU(d, scales + v * kDotLanes);
        HWY_UNROLL(16)
        for (int r = 0; r < kRows; ++r) {
          const auto both = hn::Mul(scale, hn::Set(d, x[r * x_row].scale));
          sum[r][v] = hn::MulAdd(hn::ConvertTo(d, dot[r][v]), both, sum[r][v]);
        }
        if constexpr (Kind::kMinimum) {
          const auto minimum = hn::LoadU(d, minima + v * kDotLanes);
          HWY_UNROLL(16)
          for (int r = 0; r < kRows; ++r) {
            const QuantizedGroup& from = x[r * x_row];
            const auto of_x = hn::Set(d, kHalves == 1 ? from.sum : from.half_sums[half]);
            sum[r][v] = hn::MulAdd(minimum, of_x, sum[r][v]);
          }
        }
      }
      scales += kStrip8;
      minima += kStrip8;
    }
  }
  HWY_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(16)
    for (int v = 0; v < kTile8Vectors; ++v) {
      hn::StoreU(sum[r][v], d, args.y + r * args.y_row + column + v * kDotLanes);
    }
  }
}

template <class Kind, int kRows>
void tile8(const Tile8Args& args) {
  for (int64_t column = 0; column < kStrip8; column += kTile8Columns)
    tile8_columns<Kind, kRows>(args, column);
}

using Tile8Function = void (*)(const Tile8Args&);

template <class Kind, int... kIndex>
constexpr std::array<Tile8Function, sizeof...(kIndex)> tiles8_of(std::integer_sequence<int, kIndex...>) {
  return {&tile8<Kind, kIndex + 1>...};
}

/// Tiles of 1, 2, … rows.
template <class Kind>
constexpr auto kTiles8 = tiles8_of<Kind>(std::make_integer_sequence<int, kTile8Rows>());

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
