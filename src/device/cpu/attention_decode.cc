// Attention of rows that are alone in their segment, as in decoding: AttentionArgs::fast.
//
// Keys and values are read as they lie, with the lanes along a head's elements. A score sums in the 16
// virtual lanes of reduce-inl.h; weights and outputs go by tiles of 64 keys at fixed positions, an output
// being one chain of multiply-adds over the keys of a tile. So a row's bits depend on its own sequence alone.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_decode.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <limits>

#include "base/det_math.h"
#include "device/cpu/attention_decode.h"
#include "device/cpu/math-inl.h"
#include "device/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

struct LoadKeyF32 {
  using Element = float;
  static HWY_INLINE V32 load(const float* at, size_t count) { return load_n(at, count); }
};

struct LoadKeyF16 {
  using Element = uint16_t;
  static HWY_INLINE V32 load(const uint16_t* at, size_t count) { return load_f16_n(at, count); }
};

/// The keys (or values) of one head in a tile.
template <class Load>
struct TileRows {
  const typename Load::Element* row[kTileKeys];

  TileRows(const Matrix& carry, const DecodeHeads& heads, int32_t head_dim, const int64_t (&rows)[kTileKeys],
           size_t first, size_t end) {
    const auto* data =
        static_cast<const typename Load::Element*>(carry.data) + int64_t{heads.kv_head} * head_dim;
    for (size_t key = first; key < end; ++key) row[key] = data + rows[key] * carry.stride;
  }
};

/// scores[h][key] = q_h · K[key].
template <class Load, size_t kHeads>
HWY_INLINE void decode_scores(const TileRows<Load>& keys, size_t first, size_t end, size_t head_dim,
                              DecodeScratch& scratch) {
  for (size_t key = first; key < end; ++key) {
    Lanes16 sum[kHeads];
    HWY_UNROLL(4)
    for (size_t h = 0; h < kHeads; ++h) sum[h] = zero_lanes();
    for (size_t i = 0; i < head_dim; i += kVirtualLanes) {
      HWY_UNROLL(4)
      for (size_t part = 0; part < kParts; ++part) {
        const size_t at = i + part * kVectorLanes;
        if (at >= head_dim) break;
        const V32 k = Load::load(keys.row[key] + at, head_dim - at);
        HWY_UNROLL(4)
        for (size_t h = 0; h < kHeads; ++h) {
          sum[h].part[part] = hn::MulAdd(hn::Load(F32(), scratch.queries[h] + at), k, sum[h].part[part]);
        }
      }
    }
    HWY_UNROLL(4)
    for (size_t h = 0; h < kHeads; ++h) scratch.scores[h][key] = sum_of_lanes(sum[h]);
  }
}

HWY_INLINE void cap_decode_scores(float* scores, size_t first, size_t end, float cap) {
  for (size_t key = first; key < end; key += kVectorLanes) {
    store_n(soft_cap(load_n(scores + key, end - key), cap), scores + key, end - key);
  }
}

/// A head's scores become weights e^(s - m), 0 for keys outside; returns e^(old m - m), by which what was
/// summed before is to be multiplied.
HWY_INLINE float fold_decode_scores(float* scores, size_t first, size_t end, float& maximum, float& total) {
  const F32 d;
  const float before = maximum;
  for (size_t key = first; key < end; ++key) maximum = std::max(maximum, scores[key]);
  std::fill(scores, scores + first, maximum - 1000);  // e^-1000 is 0
  std::fill(scores + end, scores + kTileKeys, maximum - 1000);
  Lanes16 sum = zero_lanes();
  for (size_t i = 0; i < kTileKeys; i += kVirtualLanes) {
    for (size_t part = 0; part < kParts; ++part) {
      float* at = scores + i + part * kVectorLanes;
      const V32 weight = exp(hn::Sub(hn::Load(d, at), hn::Set(d, maximum)));
      hn::Store(weight, d, at);
      sum.part[part] = hn::Add(sum.part[part], weight);
    }
  }
  const float shrink = before == maximum ? 1 : hn::GetLane(exp(hn::Set(d, before - maximum)));
  total = total * shrink + sum_of_lanes(sum);
  return shrink;
}

/// outs[h] = outs[h]·shrink[h] + Σ_key weights[h][key]·V[key].
template <class Load, size_t kHeads>
HWY_INLINE void decode_outs(const TileRows<Load>& values, size_t first, size_t end, size_t head_dim,
                            const float (&shrink)[kDecodeHeads], DecodeScratch& scratch) {
  const F32 d;
  constexpr size_t kAtOnce = 2;  // vectors, so that enough chains hide the latency of a multiply-add
  for (size_t i = 0; i < head_dim; i += kAtOnce * kVectorLanes) {
    V32 sum[kHeads][kAtOnce];
    HWY_UNROLL(4)
    for (size_t h = 0; h < kHeads; ++h) {
      HWY_UNROLL(2)
      for (size_t v = 0; v < kAtOnce; ++v) {
        sum[h][v] = hn::Mul(hn::Load(d, scratch.outs[h] + i + v * kVectorLanes), hn::Set(d, shrink[h]));
      }
    }
    const bool whole = i + kAtOnce * kVectorLanes <= head_dim;
    for (size_t key = first; key < end; ++key) {
      HWY_UNROLL(2)
      for (size_t v = 0; v < kAtOnce; ++v) {
        const size_t at = i + v * kVectorLanes;
        if (!whole && at >= head_dim) break;
        const V32 value = Load::load(values.row[key] + at, head_dim - at);
        HWY_UNROLL(4)
        for (size_t h = 0; h < kHeads; ++h) {
          sum[h][v] = hn::MulAdd(hn::Set(d, scratch.scores[h][key]), value, sum[h][v]);
        }
      }
    }
    HWY_UNROLL(4)
    for (size_t h = 0; h < kHeads; ++h) {
      HWY_UNROLL(2)
      for (size_t v = 0; v < kAtOnce; ++v) hn::Store(sum[h][v], d, scratch.outs[h] + i + v * kVectorLanes);
    }
  }
}

HWY_INLINE void load_queries(const AttentionArgs& args, const Segment& segment, const DecodeHeads& heads,
                             DecodeScratch& scratch) {
  const auto head_dim = static_cast<size_t>(args.head_dim);
  for (int32_t h = 0; h < heads.count; ++h) {
    const float* q =
        args.q.f32() + int64_t{segment.row_begin} * args.q.stride + int64_t{heads.head + h} * args.head_dim;
    float* to = scratch.queries[h];
    for (size_t i = 0; i < head_dim; ++i) to[i] = q[i] * args.scale;
    std::fill(to + head_dim, to + kDecodeStride, 0.0F);
    std::fill(scratch.outs[h], scratch.outs[h] + kDecodeStride, 0.0F);
  }
}

HWY_INLINE void store_outs(const AttentionArgs& args, const Segment& segment, const DecodeHeads& heads,
                           const float* maximum, const float* total, const DecodeScratch& scratch) {
  const F32 d;
  const auto head_dim = static_cast<size_t>(args.head_dim);
  for (int32_t h = 0; h < heads.count; ++h) {
    const int64_t row = segment.row_begin;
    args.lse.f32()[row * args.lse.stride + heads.head + h] =
        static_cast<float>(maximum[h] + det_log(total[h]));
    float* out = args.out.f32() + row * args.out.stride + int64_t{heads.head + h} * args.head_dim;
    const V32 inverse = hn::Set(d, 1.0F / total[h]);
    for (size_t i = 0; i < head_dim; i += kVectorLanes) {
      store_n(hn::Mul(hn::Load(d, scratch.outs[h] + i), inverse), out + i, head_dim - i);
    }
  }
}

template <class Load, size_t kHeads>
void decode_heads(const AttentionArgs& args, const PassArgs& pass, const DecodeHeads& heads,
                  DecodeScratch& scratch) {
  const Segment& segment = pass.segments[static_cast<size_t>(heads.segment)];
  const auto head_dim = static_cast<size_t>(args.head_dim);
  load_queries(args, segment, heads, scratch);
  float maximum[kDecodeHeads];
  float total[kDecodeHeads] = {};
  std::fill(maximum, maximum + kDecodeHeads, -std::numeric_limits<float>::infinity());
  const Visible seen = visible(segment.row_position, args.window);
  for (int32_t tile = seen.first / kTileKeys; tile <= seen.last / kTileKeys; ++tile) {
    const auto first = static_cast<size_t>(std::max(0, seen.first - tile * kTileKeys));
    const auto end = static_cast<size_t>(std::min(kTileKeys, seen.last + 1 - tile * kTileKeys));
    int64_t rows[kTileKeys];
    KeyRun runs[kTileKeys];
    const int32_t count =
        key_runs(pass.segments, heads.segment, tile, tile * kTileKeys + static_cast<int32_t>(end), runs);
    for (int32_t i = 0; i < count; ++i) {
      for (int32_t j = 0; j < runs[i].count; ++j) rows[runs[i].tile_row + j] = runs[i].carry_row + j;
    }
    const TileRows<Load> keys(args.carry_k, heads, args.head_dim, rows, first, end);
    const TileRows<Load> values(args.carry_v, heads, args.head_dim, rows, first, end);
    decode_scores<Load, kHeads>(keys, first, end, head_dim, scratch);
    float shrink[kDecodeHeads];
    for (size_t h = 0; h < kHeads; ++h) {
      if (args.softcap > 0) cap_decode_scores(scratch.scores[h], first, end, args.softcap);
      shrink[h] = fold_decode_scores(scratch.scores[h], first, end, maximum[h], total[h]);
    }
    decode_outs<Load, kHeads>(values, first, end, head_dim, shrink, scratch);
  }
  store_outs(args, segment, heads, maximum, total, scratch);
}

template <class Load>
void decode_heads_of(const AttentionArgs& args, const PassArgs& pass, const DecodeHeads& heads,
                     DecodeScratch& scratch) {
  static_assert(kDecodeHeads == 4);
  if (heads.count == 1) return decode_heads<Load, 1>(args, pass, heads, scratch);
  if (heads.count == 2) return decode_heads<Load, 2>(args, pass, heads, scratch);
  if (heads.count == 3) return decode_heads<Load, 3>(args, pass, heads, scratch);
  decode_heads<Load, 4>(args, pass, heads, scratch);
}

void attention_decode(const AttentionArgs& args, const PassArgs& pass, const DecodeHeads& heads,
                      DecodeScratch& scratch) {
  if (args.carry_k.dtype == DType::F16) return decode_heads_of<LoadKeyF16>(args, pass, heads, scratch);
  decode_heads_of<LoadKeyF32>(args, pass, heads, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(attention_decode);

void decode_lone_rows(const AttentionArgs& args, const PassArgs& pass, int worker, int workers,
                      DecodeScratch& scratch) noexcept {
  const auto run = HWY_DYNAMIC_DISPATCH(attention_decode);
  visit_lone_heads(args, pass, worker, workers,
                   [&](const DecodeHeads& heads) { run(args, pass, heads, scratch); });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
