// The gradient of attention by recomputation (Dao et al. 2022, algorithm 4) in two loops, so that every sum
// has one owner and one order: dk and dv by the keys of one segment in one tile, dq by blocks of query lanes.
// The first loop leaves the gradients of the scores of a few tiles for the second.
//
// With s = scale·q·k, p = e^(s - lse), delta = Σ out·dout:
// With a soft cap c, s = c·tanh(scale·q·k / c), and ds is multiplied by 1 - (s/c)².
// dv = Σ p·dout, ds = p·(dout·v - delta), dq = scale·Σ ds·k, dk = Σ ds·(scale·q).
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_back.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <limits>

#include "device/cpu/attention_tiles-inl.h"
#include "device/cpu/attention_tiles.h"
#include "device/cpu/kernels.h"
#include "device/cpu/key_blocks.h"
#include "device/cpu/math-inl.h"
#include "device/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

// lse and delta of every lane, 0 in the lanes behind.
HWY_INLINE void load_lane_numbers(const AttentionBackArgs& args, const Segment& segment,
                                  const LaneBlock& block, AttentionScratch& scratch) {
  const int32_t group = args.forward.heads / args.forward.kv_heads;
  for (int32_t lane = 0; lane < kBlockLanes; ++lane) {
    scratch.lse[lane] = 0;
    scratch.delta[lane] = 0;
    if (lane >= block.count) continue;
    const LaneAddress at = lane_address(segment, block, group, lane);
    scratch.lse[lane] = args.forward.lse.f32()[at.row * args.forward.lse.stride + at.head];
    scratch.delta[lane] = args.delta.f32()[at.row * args.delta.stride + at.head];
  }
}

// p = e^(s - lse) where visible, else 0.
HWY_INLINE V32 weight(V32 score, V32 lse, hn::Vec<I32> position, hn::Vec<I32> first, hn::Vec<I32> last) {
  const F32 d;
  const auto outside = hn::Or(hn::Lt(position, first), hn::Gt(position, last));
  return hn::IfThenZeroElse(hn::RebindMask(d, outside), exp(hn::Sub(score, lse)));
}

// scores [lane][key] become p, dscores [lane][key] become p·(dp - delta).
template <bool kCapped>
HWY_INLINE void score_gradients_by_lane(AttentionScratch& scratch, size_t lanes, int32_t tile, int32_t begin,
                                        int32_t end, float cap) {
  const F32 d;
  const I32 di;
  for (size_t lane = 0; lane < lanes; ++lane) {
    const V32 lse = hn::Set(d, scratch.lse[lane]);
    const V32 delta = hn::Set(d, scratch.delta[lane]);
    const auto first = hn::Set(di, std::max(scratch.first[lane], begin));
    const auto last = hn::Set(di, std::min(scratch.last[lane], end - 1));
    for (size_t key = 0; key < kTileKeys; key += kVectorLanes) {
      const size_t at = lane * kTileKeys + key;
      const auto position = hn::Iota(di, tile * kTileKeys + static_cast<int32_t>(key));
      V32 score = hn::Load(d, scratch.scores + at);
      if constexpr (kCapped) score = soft_cap(score, cap);
      const V32 p = weight(score, lse, position, first, last);
      hn::Store(p, d, scratch.scores + at);
      V32 ds = hn::Mul(p, hn::Sub(hn::Load(d, scratch.dscores + at), delta));
      if constexpr (kCapped) ds = hn::Mul(ds, soft_cap_slope(score, cap));
      hn::Store(ds, d, scratch.dscores + at);
    }
  }
}

/// Where the gradients of the scores of a lane with the keys of a tile are kept.
HWY_INLINE float* kept_scores(const AttentionBackArgs& args, const LaneAddress& at, int32_t tile) {
  constexpr int32_t kTiles = AttentionBackArgs::kScoreColumns / kTileKeys;
  const int64_t column = (int64_t{at.head} * kTiles + tile % kTiles) * kTileKeys;
  return args.dscores.f32() + at.row * args.dscores.stride + column;
}

/// Only the columns of these keys: others of the tile may belong to another segment, and to another worker.
HWY_INLINE void keep_score_gradients(const AttentionBackArgs& args, const Segment& segment,
                                     const LaneBlock& block, const KeyBlock& keys,
                                     const AttentionScratch& scratch) {
  const int32_t group = args.forward.heads / args.forward.kv_heads;
  const int32_t first = keys.begin - keys.tile() * kTileKeys;
  const auto count = static_cast<size_t>(keys.end - keys.begin);
  for (int32_t lane = 0; lane < block.count; ++lane) {
    const LaneAddress at = lane_address(segment, block, group, lane);
    std::memcpy(kept_scores(args, at, keys.tile()) + first, scratch.dscores + lane * kTileKeys + first,
                count * sizeof(float));
  }
}

// What one block of query lanes adds to the gradients of the keys at hand.
HWY_INLINE void add_block(const AttentionBackArgs& args, const Segment& segment, const LaneBlock& block,
                          const KeyBlock& keys, AttentionScratch& scratch) {
  const AttentionArgs& forward = args.forward;
  const int32_t group = forward.heads / forward.kv_heads;
  const auto head_dim = static_cast<size_t>(forward.head_dim);
  const size_t lanes = (static_cast<size_t>(block.count) + kKeyRows - 1) / kKeyRows * kKeyRows;
  load_lane_numbers(args, segment, block, scratch);
  load_ranges(segment, block, group, forward.window, scratch);
  load_block(forward.q, segment, block, group, forward.head_dim, forward.scale, scratch.queries);
  load_block(args.dout, segment, block, group, forward.head_dim, 1, scratch.douts);
  block_by_tile(scratch.queries, lanes, scratch.keys_across, head_dim, scratch.scores);
  block_by_tile(scratch.douts, lanes, scratch.values_across, head_dim, scratch.dscores);
  if (forward.softcap > 0) {
    score_gradients_by_lane<true>(scratch, lanes, keys.tile(), keys.begin, keys.end, forward.softcap);
  } else {
    score_gradients_by_lane<false>(scratch, lanes, keys.tile(), keys.begin, keys.end, 0);
  }
  // Only keys that are at hand and that the block's last row sees.
  const int32_t tile_begin = keys.tile() * kTileKeys;
  const int32_t end = std::min(keys.end, visible(segment, block, group, forward.window).last + 1);
  const size_t first = static_cast<size_t>(keys.begin - tile_begin) / 8 * 8;
  const size_t last = computed_keys(keys.tile(), end);
  const size_t columns = padded_dim(forward.head_dim);
  block_across_by_block(scratch.scores, scratch.douts, lanes, first, last, columns, scratch.dvalues);
  block_across_by_block(scratch.dscores, scratch.queries, lanes, first, last, columns, scratch.dkeys);
  keep_score_gradients(args, segment, block, keys, scratch);
}

// The tile rows of `keys` from f32 rows of the carry's gradient, zeros around them.
HWY_INLINE void load_gradient(const Matrix& matrix, const KeyBlock& keys, int32_t head_dim, float* to) {
  std::memset(to, 0, kTileKeys * kTileStride * sizeof(float));
  const int64_t column = int64_t{keys.kv_head} * head_dim;
  for (int32_t p = keys.begin; p < keys.end; ++p) {
    load_tile_row(matrix, keys.carry_row(p), column, static_cast<size_t>(head_dim),
                  to + (p - keys.tile() * kTileKeys) * kTileStride);
  }
}

HWY_INLINE void store_gradient(const float* from, const KeyBlock& keys, int32_t head_dim,
                               const Matrix& matrix) {
  for (int32_t p = keys.begin; p < keys.end; ++p) {
    std::memcpy(matrix.f32() + keys.carry_row(p) * matrix.stride + int64_t{keys.kv_head} * head_dim,
                from + (p - keys.tile() * kTileKeys) * kTileStride,
                static_cast<size_t>(head_dim) * sizeof(float));
  }
}

void key_gradient_block(const AttentionBackArgs& args, const PassArgs& pass, const KeyBlock& keys,
                        AttentionScratch& scratch) {
  const AttentionArgs& forward = args.forward;
  load_gradient(forward.carry_k, keys, forward.head_dim, scratch.keys);
  load_gradient(forward.carry_v, keys, forward.head_dim, scratch.values);
  transpose(scratch.keys, kTileStride, kTileKeys, forward.head_dim, scratch.keys_across, kTileKeys);
  transpose(scratch.values, kTileStride, kTileKeys, forward.head_dim, scratch.values_across, kTileKeys);
  load_gradient(args.dk, keys, forward.head_dim, scratch.dkeys);
  load_gradient(args.dv, keys, forward.head_dim, scratch.dvalues);
  visit_lane_blocks_that_see(forward, pass, keys, [&](const Segment& segment, const LaneBlock& block) {
    add_block(args, segment, block, keys, scratch);
  });
  store_gradient(scratch.dkeys, keys, forward.head_dim, args.dk);
  store_gradient(scratch.dvalues, keys, forward.head_dim, args.dv);
}

// delta = Σ out·dout of rows [begin, end).
void output_products(const AttentionBackArgs& args, int64_t begin, int64_t end) {
  const AttentionArgs& forward = args.forward;
  for (int64_t r = begin; r < end; ++r) {
    for (int32_t h = 0; h < forward.heads; ++h) {
      const int64_t column = int64_t{h} * forward.head_dim;
      args.delta.f32()[r * args.delta.stride + h] =
          dot(forward.out.f32() + r * forward.out.stride + column,
              args.dout.f32() + r * args.dout.stride + column, static_cast<size_t>(forward.head_dim));
    }
  }
}

/// dscores [lane][key] from what was kept, 0 where a lane does not see a key.
HWY_INLINE void load_score_gradients(const AttentionBackArgs& args, const Segment& segment,
                                     const LaneBlock& block, int32_t tile, size_t lanes,
                                     AttentionScratch& scratch) {
  const F32 d;
  const I32 di;
  const int32_t group = args.forward.heads / args.forward.kv_heads;
  for (size_t lane = 0; lane < lanes; ++lane) {
    float* to = scratch.dscores + lane * kTileKeys;
    if (static_cast<int32_t>(lane) >= block.count) {
      std::memset(to, 0, kTileKeys * sizeof(float));
      continue;
    }
    const float* from =
        kept_scores(args, lane_address(segment, block, group, static_cast<int32_t>(lane)), tile);
    const auto first = hn::Set(di, scratch.first[lane]);
    const auto last = hn::Set(di, scratch.last[lane]);
    for (size_t key = 0; key < kTileKeys; key += kVectorLanes) {
      const auto position = hn::Iota(di, tile * kTileKeys + static_cast<int32_t>(key));
      const auto outside = hn::Or(hn::Lt(position, first), hn::Gt(position, last));
      hn::Store(hn::IfThenZeroElse(hn::RebindMask(d, outside), hn::LoadU(d, from + key)), d, to + key);
    }
  }
}

/// The lanes' rows of dq so far, zeros at the beginning.
HWY_INLINE void load_sums(const Matrix& dq, const Segment& segment, const LaneBlock& block, int32_t group,
                          int32_t head_dim, bool begin, float* sums) {
  if (begin) {
    std::memset(sums, 0, kBlockLanes * kTileStride * sizeof(float));
    return;
  }
  load_block(dq, segment, block, group, head_dim, 1, sums);
}

HWY_INLINE void store_sums(const float* sums, const Segment& segment, const LaneBlock& block, int32_t group,
                           int32_t head_dim, float factor, const Matrix& dq) {
  const F32 d;
  const auto width = static_cast<size_t>(head_dim);
  for (int32_t lane = 0; lane < block.count; ++lane) {
    const LaneAddress at = lane_address(segment, block, group, lane);
    float* to = dq.f32() + at.row * dq.stride + int64_t{at.head} * head_dim;
    const float* row = sums + lane * kTileStride;
    for (size_t e = 0; e < width; e += kVectorLanes) {
      const V32 sum = load_n(row + e, width - e);
      store_n(hn::MulAdd(sum, hn::Set(d, factor), hn::Zero(d)), to + e, width - e);
    }
  }
}

// What the tiles [begin, end) add to dq of a block of lanes, in the order of the keys.
void query_gradient_block(const AttentionBackArgs& args, const PassArgs& pass, const LaneBlock& block,
                          int32_t begin, int32_t end, AttentionScratch& scratch) {
  const AttentionArgs& forward = args.forward;
  const Segment& segment = pass.segments[static_cast<size_t>(block.segment)];
  const int32_t group = forward.heads / forward.kv_heads;
  const Visible seen = visible(segment, block, group, forward.window);
  const int32_t first = seen.first / kTileKeys;
  const int32_t last = seen.last / kTileKeys;
  if (last < begin || first >= end) return;
  const size_t lanes = (static_cast<size_t>(block.count) + kDimRows - 1) / kDimRows * kDimRows;
  const size_t columns = padded_dim(forward.head_dim);
  load_ranges(segment, block, group, forward.window, scratch);
  load_sums(args.dq, segment, block, group, forward.head_dim, first >= begin, scratch.queries);
  for (int32_t tile = std::max(begin, first); tile <= std::min(end - 1, last); ++tile) {
    const int32_t behind = std::min((tile + 1) * kTileKeys, seen.last + 1);
    load_tile(pass, block, forward.head_dim, tile, behind, forward.carry_k, scratch.keys);
    load_score_gradients(args, segment, block, tile, lanes, scratch);
    block_by_rows(scratch.dscores, scratch.keys, lanes, computed_keys(tile, behind), columns,
                  scratch.queries);
  }
  store_sums(scratch.queries, segment, block, group, forward.head_dim, last < end ? forward.scale : 1,
             args.dq);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(output_products);
HWY_EXPORT(key_gradient_block);
HWY_EXPORT(query_gradient_block);

void attention_back(const AttentionBackArgs& args, const PassArgs& pass, const Workers& workers) noexcept {
  constexpr int32_t kTiles = AttentionBackArgs::kScoreColumns / kTileKeys;
  const auto by_key = HWY_DYNAMIC_DISPATCH(key_gradient_block);
  const auto by_query = HWY_DYNAMIC_DISPATCH(query_gradient_block);
  const int size = workers.pool.size();
  const auto scratch_of = [&](int worker) -> AttentionScratch& {
    return *reinterpret_cast<AttentionScratch*>(workers.scratch_of(worker));
  };
  workers.pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(output_products)(args, begin, end);
  });
  const auto [first, last] = tiles_seen(args.forward, pass);
  for (int32_t begin = first / kTiles * kTiles; begin <= last; begin += kTiles) {
    const int32_t end = begin + kTiles;
    workers.pool.run([&](int worker) {
      visit_key_blocks(args.forward, pass, begin, end, worker, size,
                       [&](const KeyBlock& keys) { by_key(args, pass, keys, scratch_of(worker)); });
    });
    workers.pool.run([&](int worker) {
      visit_lane_blocks(args.forward, pass, begin, end, worker, size, [&](const LaneBlock& block) {
        by_query(args, pass, block, begin, end, scratch_of(worker));
      });
    });
  }
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
