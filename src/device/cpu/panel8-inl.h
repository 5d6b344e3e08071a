// Strips of W for the 8-bit products: quants put in the order in which the tile reads them, scales beside
// them.

#if defined(RETRO_DEVICE_CPU_PANEL8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_PANEL8_INL_H_
#undef RETRO_DEVICE_CPU_PANEL8_INL_H_
#else
#define RETRO_DEVICE_CPU_PANEL8_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cpu/decode/formats-inl.h"
#include "device/cpu/dot4-inl.h"
#include "device/cpu/scratch.h"
#include "device/cpu/tile8-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

/// A rectangle of W: up to 32 rows, whole blocks of each.
struct Strip8 {
  const std::byte* data;  // the first row's first block
  int64_t row_bytes;
  int64_t rows;  // at least 1; the last one stands for those that are missing
  int64_t columns;
};

/// Rows [begin, end) of a rectangle that will be asked for later: to the L2 cache, since in L1 there is a
/// panel.
HWY_INLINE void prefetch_rows(const std::byte* data, int64_t row_bytes, int64_t bytes, int64_t begin,
                              int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const std::byte* row = data + r * row_bytes;
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(row + i, 0, 2);
#else
    for (int64_t i = 0; i < bytes; i += 64) hwy::Prefetch(row + i);
#endif
  }
}

/// Reads a line of each 64 bytes of a rectangle, row by row: unpacking goes across the rows, which the
/// hardware does not foresee, so that it would wait for each line.
HWY_INLINE void touch_rows(const std::byte* data, int64_t row_bytes, int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* row = data + r * row_bytes;
    for (int64_t i = 0; i < bytes; i += 64)
      static_cast<void>(*static_cast<const volatile std::byte*>(row + i));
  }
}

/// Addresses of 16 rows.
using Rows16 = const std::byte* const*;

/// The same addresses, of which the compiler believes them to be in memory: it would put them into vector
/// registers, from which they come back slowly.
HWY_INLINE Rows16 in_memory(Rows16 rows) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm("" : "+r"(rows) : : "memory");
#endif
  return rows;
}

/// 16 bytes of some rows, a row a block of 128 bits: of 16 rows four vectors on AVX-512, of 4 rows elsewhere.
constexpr int kLineRows = HWY_TARGET <= HWY_AVX3 ? 4 : 1;
using LineBytes = hn::FixedTag<uint8_t, 16 * kLineRows>;
using Line = hn::Vec<LineBytes>;
constexpr int kLineParts = 4 / kLineRows;

/// 16 bytes of row[0] (and of row[4], row[8], row[12]).
HWY_INLINE Line load_line(Rows16 row, int64_t at) {
#if HWY_TARGET <= HWY_AVX3
  const auto bytes = [&](int r) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row[r] + at)); };
  __m512i line = _mm512_castsi128_si512(bytes(0));
  line = _mm512_inserti32x4(line, bytes(4), 1);
  line = _mm512_inserti32x4(line, bytes(8), 2);
  return Line{_mm512_inserti32x4(line, bytes(12), 3)};
#else
  return hn::LoadU(LineBytes(), reinterpret_cast<const uint8_t*>(*row + at));
#endif
}

/// Lines of four rows with 4 words each; on return word s of all rows is in v[s].
HWY_INLINE void transpose_words(Line (&v)[4]) {
  const hn::Repartition<uint32_t, LineBytes> words;
  for (int round = 0; round < 2; ++round) {
    hn::Vec<decltype(words)> w[4];
    for (int i = 0; i < 4; ++i) w[i] = hn::BitCast(words, v[i]);
    for (int i = 0; i < 2; ++i) {
      v[2 * i] = hn::BitCast(LineBytes(), hn::InterleaveLower(words, w[i], w[i + 2]));
      v[2 * i + 1] = hn::BitCast(LineBytes(), hn::InterleaveUpper(words, w[i], w[i + 2]));
    }
  }
}

/// Words 0 … 3 of 16 bytes of each row, as map(bytes), become the steps from `to` on.
template <class Map>
HWY_INLINE void unpack_bytes(Rows16 row, int64_t at, int8_t* to, const Map& map) {
  for (int part = 0; part < kLineParts; ++part) {
    Line v[4];
    for (int i = 0; i < 4; ++i) v[i] = load_line(row + 4 * part + i, at);
    transpose_words(v);
    for (int s = 0; s < 4; ++s) store_signed(map(v[s]), to + s * kStep8Bytes + 16 * part);
  }
}

/// The same of the low nibbles, at `low`, and of the high ones, at `high`.
template <class Map>
HWY_INLINE void unpack_nibbles(Rows16 row, int64_t at, int8_t* low, int8_t* high, const Map& map) {
  for (int part = 0; part < kLineParts; ++part) {
    Line v[4];
    for (int i = 0; i < 4; ++i) v[i] = load_line(row + 4 * part + i, at);
    transpose_words(v);
    for (int s = 0; s < 4; ++s) {
      store_signed(map(low_nibbles(v[s])), low + s * kStep8Bytes + 16 * part);
      store_signed(map(high_nibbles(v[s])), high + s * kStep8Bytes + 16 * part);
    }
  }
}

/// A signed quant as the panel has it.
HWY_INLINE Line panel_bytes(Line quants) {
  return kBiased ? hn::Xor(quants, hn::Set(LineBytes(), uint8_t{128})) : quants;
}

constexpr int64_t kChunk8Bytes = 8 * kStep8Bytes;  // 32 weights of each output

template <class Format>
using KindOf = WeightKind<Format::kMinimum, std::min(Format::kGroup, 32)>;

/// The quants of a block of each of 16 rows, at `at` in them, through the format's decoder. `rows` is room
/// for 32 quants of each.
template <class Format>
struct Quants8 {
  static HWY_INLINE void unpack(Rows16 row, int64_t at, int8_t* rows, int8_t* to) {
    const std::byte* quants[16];
    for (int r = 0; r < 16; ++r) quants[r] = reinterpret_cast<const std::byte*>(rows + 32 * r);
    HWY_UNROLL(8)
    for (int chunk = 0; chunk < Format::kBlock / 32; ++chunk, to += kChunk8Bytes) {
      for (int r = 0; r < 16; ++r) Format::quants(row[r] + at, chunk, rows + 32 * r);
      const auto map = [](Line v) { return Format::kMinimum ? v : panel_bytes(v); };
      for (int half = 0; half < 2; ++half) {
        unpack_bytes(quants, 16 * half, to + half * 4 * kStep8Bytes, map);
      }
    }
  }
};

template <>
struct Quants8<Q4_0> {
  static HWY_INLINE void unpack(Rows16 row, int64_t at, int8_t*, int8_t* to) {
    const auto lift = hn::Set(LineBytes(), static_cast<uint8_t>(kBiased ? 120 : -8));
    unpack_nibbles(row, at + static_cast<int64_t>(offsetof(Q4_0::Block, quants)), to, to + 4 * kStep8Bytes,
                   [&](Line v) { return hn::Add(v, lift); });
  }
};

template <>
struct Quants8<Q4_1> {
  static HWY_INLINE void unpack(Rows16 row, int64_t at, int8_t*, int8_t* to) {
    unpack_nibbles(row, at + static_cast<int64_t>(offsetof(Q4_1::Block, quants)), to, to + 4 * kStep8Bytes,
                   [](Line v) { return v; });
  }
};

template <>
struct Quants8<Q4_K> {
  static HWY_INLINE void unpack(Rows16 row, int64_t at, int8_t*, int8_t* to) {
    at += static_cast<int64_t>(offsetof(Q4_K::Block, quants));
    for (int pair = 0; pair < 4; ++pair, to += 2 * kChunk8Bytes) {
      for (int half = 0; half < 2; ++half) {
        int8_t* low = to + half * 4 * kStep8Bytes;
        unpack_nibbles(row, at + 32 * pair + 16 * half, low, low + kChunk8Bytes, [](Line v) { return v; });
      }
    }
  }
};

template <>
struct Quants8<Q8_0> {
  static HWY_INLINE void unpack(Rows16 row, int64_t at, int8_t*, int8_t* to) {
    at += static_cast<int64_t>(offsetof(Q8_0::Block, quants));
    for (int half = 0; half < 2; ++half) {
      unpack_bytes(row, at + 16 * half, to + half * 4 * kStep8Bytes, [](Line v) { return panel_bytes(v); });
    }
  }
};

/// Levels of a table by their number.
template <class Format, const int8_t (&kLevels)[16]>
struct Levels8 {
  static HWY_INLINE void unpack(Rows16 row, int64_t at, int8_t*, int8_t* to) {
    const auto levels = panel_bytes(hn::LoadDup128(LineBytes(), reinterpret_cast<const uint8_t*>(kLevels)));
    at += static_cast<int64_t>(offsetof(typename Format::Block, quants));
    for (int chunk = 0; chunk < Format::kBlock / 32; ++chunk, to += kChunk8Bytes) {
      unpack_nibbles(row, at + 16 * chunk, to, to + 4 * kStep8Bytes,
                     [&](Line v) { return hn::TableLookupBytes(levels, v); });
    }
  }
};
template <>
struct Quants8<IQ4_NL> : Levels8<IQ4_NL, tensor::kIq4Values> {};
template <>
struct Quants8<IQ4_XS> : Levels8<IQ4_XS, tensor::kIq4Values> {};
template <>
struct Quants8<MXFP4> : Levels8<MXFP4, tensor::kE2m1Values> {};

using Floats16 = hn::CappedTag<float, 16>;
constexpr int kFloats16 = static_cast<int>(hn::MaxLanes(Floats16()));

HWY_INLINE void widen_halves(const uint16_t* halves, float* to) {
  const hn::Rebind<uint16_t, Floats16> bits;
  const hn::Rebind<hwy::float16_t, Floats16> half;
  for (int i = 0; i < 16; i += kFloats16) {
    hn::StoreU(hn::PromoteTo(Floats16(), hn::BitCast(half, hn::LoadU(bits, halves + i))), Floats16(), to + i);
  }
}

/// The scales and minima of `blocks` blocks of each of 16 rows: those of group g and row r go to [32·g + r].
/// A group of more than 32 weights is written for each 32.
template <class Format>
struct Scales8 {
  static HWY_INLINE void unpack(Rows16 row, int64_t blocks, float* scales, float* minima, Panel8&) {
    constexpr int kGroups = Format::kBlock / KindOf<Format>::kGroup;
    constexpr int kRepeat = Format::kGroup / KindOf<Format>::kGroup;
    for (int r = 0; r < 16; ++r) {
      for (int64_t b = 0; b < blocks; ++b) {
        float scale[kGroups];
        float minimum[kGroups];
        Format::scales(row[r] + b * static_cast<int64_t>(sizeof(typename Format::Block)), scale, minimum);
        for (int g = 0; g < kGroups; ++g) {
          const int64_t at = (b * kGroups + g) * kStrip8 + r;
          scales[at] = scale[g / kRepeat];
          if constexpr (Format::kMinimum) minima[at] = minimum[g / kRepeat];
        }
      }
    }
  }
};

/// A half at the start of a block of 32, and behind it another for the minimum. All are fetched first: a
/// vector loaded behind the stores of its parts would wait for them.
template <class Format>
struct HalfScales8 {
  static HWY_INLINE void unpack(Rows16 row, int64_t blocks, float* scales, float* minima, Panel8& panel) {
    static_assert(Format::kBlock == 32);
    constexpr int kHalves = Format::kMinimum ? 2 : 1;
    for (int r = 0; r < 16; ++r) {
      const std::byte* block = row[r];
      for (int64_t b = 0; b < blocks; ++b, block += sizeof(typename Format::Block)) {
        for (int i = 0; i < kHalves; ++i) {
          std::memcpy(panel.halves + (kHalves * b + i) * 16 + r, block + 2 * i, 2);
        }
      }
    }
    for (int64_t b = 0; b < blocks; ++b) {
      widen_halves(panel.halves + kHalves * b * 16, scales + b * kStrip8);
      if constexpr (Format::kMinimum) widen_halves(panel.halves + (2 * b + 1) * 16, minima + b * kStrip8);
    }
  }
};
template <>
struct Scales8<Q4_0> : HalfScales8<Q4_0> {};
template <>
struct Scales8<Q4_1> : HalfScales8<Q4_1> {};
template <>
struct Scales8<Q5_0> : HalfScales8<Q5_0> {};
template <>
struct Scales8<Q5_1> : HalfScales8<Q5_1> {};
template <>
struct Scales8<Q8_0> : HalfScales8<Q8_0> {};
template <>
struct Scales8<IQ4_NL> : HalfScales8<IQ4_NL> {};

template <class Format>
void unpack_strip(const Strip8& strip, Panel8& panel) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(typename Format::Block));
  const int64_t blocks = strip.columns / Format::kBlock;
  for (int half = 0; half < 2; ++half) {
    const std::byte* row[16];
    for (int r = 0; r < 16; ++r) {
      row[r] = strip.data + std::min<int64_t>(16 * half + r, strip.rows - 1) * strip.row_bytes;
    }
    Scales8<Format>::unpack(row, blocks, panel.scales + 16 * half, panel.minima + 16 * half, panel);
    int8_t* to = panel.quants + 64 * half;
    for (int64_t b = 0; b < blocks; ++b, to += Format::kBlock / 32 * kChunk8Bytes) {
      Quants8<Format>::unpack(in_memory(row), b * kBytes, panel.rows, to);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#endif
