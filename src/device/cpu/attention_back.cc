// The gradient of attention by recomputation (Dao et al. 2022, algorithm 4) in two loops, so that every sum
// has one owner and one order: dq by blocks of query lanes, dk and dv by the keys of one segment in one tile.
//
// With s = scale·q·k, p = e^(s - lse), delta = Σ out·dout:
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

// dscores [key][lane] = p·(dp - delta) from the scores and, in dscores, dp.
HWY_INLINE void score_gradients_by_key(AttentionScratch& scratch, size_t lanes, size_t keys, int32_t tile) {
  const F32 d;
  const I32 di;
  for (size_t j = 0; j < lanes; j += kVectorLanes) {
    const auto first = hn::Load(di, scratch.first + j);
    const auto last = hn::Load(di, scratch.last + j);
    const V32 lse = hn::Load(d, scratch.lse + j);
    const V32 delta = hn::Load(d, scratch.delta + j);
    for (size_t key = 0; key < keys; ++key) {
      const size_t at = key * kBlockLanes + j;
      const V32 p = weight(hn::Load(d, scratch.scores + at), lse,
                           hn::Set(di, tile * kTileKeys + static_cast<int32_t>(key)), first, last);
      hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, scratch.dscores + at), delta)), d, scratch.dscores + at);
    }
  }
}

void query_gradient_block(const AttentionBackArgs& args, const PassArgs& pass, const LaneBlock& block,
                          AttentionScratch& scratch) {
  const AttentionArgs& forward = args.forward;
  const Segment& segment = pass.segments[static_cast<size_t>(block.segment)];
  const int32_t group = forward.heads / forward.kv_heads;
  const auto head_dim = static_cast<size_t>(forward.head_dim);
  const size_t columns = (head_dim + 7) / 8 * 8;
  const size_t lanes = padded_lanes(static_cast<size_t>(block.count));
  const Visible seen = visible(segment, block, group, forward.window);
  for (int32_t lane = 0; lane < block.count; ++lane) {
    const LaneAddress at = lane_address(segment, block, group, lane);
    const int64_t column = int64_t{at.head} * forward.head_dim;
    args.delta.f32()[at.row * args.delta.stride + at.head] =
        dot(forward.out.f32() + at.row * forward.out.stride + column,
            args.dout.f32() + at.row * args.dout.stride + column, head_dim);
  }
  load_lane_numbers(args, segment, block, scratch);
  load_ranges(segment, block, group, forward.window, scratch);
  load_across(forward.q, segment, block, group, forward.head_dim, forward.scale, scratch.queries,
              scratch.queries_across);
  load_across(args.dout, segment, block, group, forward.head_dim, 1, scratch.douts, scratch.douts_across);
  std::memset(scratch.outs_across, 0, columns * kBlockLanes * sizeof(float));
  for (int32_t tile = seen.first / kTileKeys; tile <= seen.last / kTileKeys; ++tile) {
    const int32_t end = std::min((tile + 1) * kTileKeys, seen.last + 1);
    load_tile(pass, block, forward.head_dim, tile, end, forward.carry_k, scratch.keys);
    load_tile(pass, block, forward.head_dim, tile, end, forward.carry_v, scratch.values);
    const size_t keys = computed_keys(tile, end);
    tile_by_block(scratch.keys, keys, scratch.queries_across, head_dim, lanes, scratch.scores);
    tile_by_block(scratch.values, keys, scratch.douts_across, head_dim, lanes, scratch.dscores);
    score_gradients_by_key(scratch, lanes, keys, tile);
    tile_across_by_block<Start::sum>(scratch.keys, columns, scratch.dscores, keys, lanes, scratch.outs_across,
                                     nullptr);
  }
  for (size_t lane = 0; lane < kBlockLanes; ++lane) scratch.sum[lane] = forward.scale;
  store_across(scratch.outs_across, scratch.sum, segment, block, group, forward.head_dim, args.dq,
               scratch.queries);
}

// scores [lane][key] become p, dscores [lane][key] become p·(dp - delta).
HWY_INLINE void score_gradients_by_lane(AttentionScratch& scratch, size_t lanes, int32_t tile, int32_t begin,
                                        int32_t end) {
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
      const V32 p = weight(hn::Load(d, scratch.scores + at), lse, position, first, last);
      hn::Store(p, d, scratch.scores + at);
      hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, scratch.dscores + at), delta)), d, scratch.dscores + at);
    }
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
  score_gradients_by_lane(scratch, lanes, keys.tile(), keys.begin, keys.end);
  // Only keys that are at hand and that the block's last row sees.
  const int32_t tile_begin = keys.tile() * kTileKeys;
  const int32_t end = std::min(keys.end, visible(segment, block, group, forward.window).last + 1);
  const size_t first = static_cast<size_t>(keys.begin - tile_begin) / 8 * 8;
  const size_t last = computed_keys(keys.tile(), end);
  const size_t columns = padded_dim(forward.head_dim);
  block_across_by_block(scratch.scores, scratch.douts, lanes, first, last, columns, scratch.dvalues);
  block_across_by_block(scratch.dscores, scratch.queries, lanes, first, last, columns, scratch.dkeys);
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

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(query_gradient_block);
HWY_EXPORT(key_gradient_block);

void attention_back(const AttentionBackArgs& args, const PassArgs& pass, const Workers& workers) noexcept {
  const auto by_query = HWY_DYNAMIC_DISPATCH(query_gradient_block);
  const auto by_key = HWY_DYNAMIC_DISPATCH(key_gradient_block);
  const int size = workers.pool.size();
  const auto scratch_of = [&](int worker) -> AttentionScratch& {
    return *reinterpret_cast<AttentionScratch*>(workers.scratch_of(worker));
  };
  workers.pool.run([&](int worker) {
    visit_lane_blocks(args.forward, pass, worker, size,
                      [&](const LaneBlock& block) { by_query(args, pass, block, scratch_of(worker)); });
  });
  workers.pool.run([&](int worker) {
    visit_key_blocks(args.forward, pass, worker, size,
                     [&](const KeyBlock& keys) { by_key(args, pass, keys, scratch_of(worker)); });
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
