// Attention by tiles of keys with a running softmax (Milakov and Gimelshein 2018; Dao et al. 2022).
//
// A block of 48 query lanes runs over the tiles its rows see, in ascending order. Scores lie [key][lane], so
// that the softmax is elementwise in the lanes: a row's bits are the same in any block. A tile of which a
// lane sees nothing multiplies its sums by e^0 = 1 and adds zeros.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <limits>

#include "base/det_math.h"
#include "device/cpu/attention_decode.h"
#include "device/cpu/attention_tiles-inl.h"
#include "device/cpu/attention_tiles.h"
#include "device/cpu/kernels.h"
#include "device/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Scores of keys outside a lane's range become -infinity.
HWY_INLINE void mask_scores(AttentionScratch& scratch, size_t lanes, size_t keys, int32_t tile) {
  const F32 d;
  const I32 di;
  for (size_t j = 0; j < lanes; j += kVectorLanes) {
    const auto first = hn::Load(di, scratch.first + j);
    const auto last = hn::Load(di, scratch.last + j);
    for (size_t key = 0; key < keys; ++key) {
      float* score = scratch.scores + key * kBlockLanes + j;
      const auto position = hn::Set(di, tile * kTileKeys + static_cast<int32_t>(key));
      const auto outside = hn::Or(hn::Lt(position, first), hn::Gt(position, last));
      hn::Store(hn::IfThenElse(hn::RebindMask(d, outside), hn::Set(d, kMinusInfinity), hn::Load(d, score)), d,
                score);
    }
  }
}

HWY_INLINE void cap_scores(AttentionScratch& scratch, size_t lanes, size_t keys, float cap) {
  const F32 d;
  for (size_t key = 0; key < keys; ++key) {
    for (size_t j = 0; j < lanes; j += kVectorLanes) {
      float* score = scratch.scores + key * kBlockLanes + j;
      hn::Store(soft_cap(hn::Load(d, score), cap), d, score);
    }
  }
}

// Scores become weights e^(s - m) with m the running maximum; `delta` receives e^(old m - m), by which what
// was summed before is to be multiplied.
HWY_INLINE void fold_scores(AttentionScratch& scratch, size_t lanes, size_t keys) {
  const F32 d;
  for (size_t j = 0; j < lanes; j += kVectorLanes) {
    float* scores = scratch.scores + j;
    V32 top[4];
    for (size_t i = 0; i < 4; ++i) top[i] = hn::Load(d, scores + i * kBlockLanes);
    for (size_t key = 4; key < keys; key += 4) {
      for (size_t i = 0; i < 4; ++i) top[i] = hn::Max(top[i], hn::Load(d, scores + (key + i) * kBlockLanes));
    }
    const V32 tile_top = hn::Max(hn::Max(top[0], top[1]), hn::Max(top[2], top[3]));
    const V32 before = hn::Load(d, scratch.maximum + j);
    const V32 maximum = hn::Max(before, tile_top);
    // A lane that has seen nothing yet: -infinity less -infinity would be NaN.
    const V32 base = hn::IfThenZeroElse(hn::Eq(maximum, hn::Set(d, kMinusInfinity)), maximum);
    const V32 shrink = exp(hn::Sub(before, base));
    V32 sums[4];
    for (size_t i = 0; i < 4; ++i) sums[i] = hn::Zero(d);
    for (size_t key = 0; key < keys; key += 4) {
      for (size_t i = 0; i < 4; ++i) {
        float* score = scores + (key + i) * kBlockLanes;
        const V32 weight = exp(hn::Sub(hn::Load(d, score), base));
        hn::Store(weight, d, score);
        sums[i] = hn::Add(sums[i], weight);
      }
    }
    const V32 tile_sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    hn::Store(hn::MulAdd(hn::Load(d, scratch.sum + j), shrink, tile_sum), d, scratch.sum + j);
    hn::Store(maximum, d, scratch.maximum + j);
    hn::Store(shrink, d, scratch.delta + j);
  }
}

// out = O / l, lse = m + log l.
HWY_INLINE void finish_block(const AttentionArgs& args, const Segment& segment, const LaneBlock& block,
                             AttentionScratch& scratch) {
  const int32_t group = args.heads / args.kv_heads;
  for (int32_t lane = 0; lane < block.count; ++lane) {
    const LaneAddress at = lane_address(segment, block, group, lane);
    const double lse = scratch.maximum[lane] + det_log(scratch.sum[lane]);
    args.lse.f32()[at.row * args.lse.stride + at.head] = static_cast<float>(lse);
    scratch.sum[lane] = 1.0F / scratch.sum[lane];
  }
  store_across(scratch.outs_across, scratch.sum, segment, block, group, args.head_dim, args.out,
               scratch.queries);
}

void attention_block(const AttentionArgs& args, const PassArgs& pass, const LaneBlock& block,
                     AttentionScratch& scratch) {
  const Segment& segment = pass.segments[static_cast<size_t>(block.segment)];
  const int32_t group = args.heads / args.kv_heads;
  const auto head_dim = static_cast<size_t>(args.head_dim);
  const size_t columns = (head_dim + 7) / 8 * 8;
  const size_t lanes = padded_lanes(static_cast<size_t>(block.count));
  const Visible seen = visible(segment, block, group, args.window);
  load_across(args.q, segment, block, group, args.head_dim, args.scale, scratch.queries,
              scratch.queries_across);
  load_ranges(segment, block, group, args.window, scratch);
  std::memset(scratch.outs_across, 0, columns * kBlockLanes * sizeof(float));
  for (size_t lane = 0; lane < kBlockLanes; ++lane) {
    scratch.maximum[lane] = kMinusInfinity;
    scratch.sum[lane] = 0;
  }
  for (int32_t tile = seen.first / kTileKeys; tile <= seen.last / kTileKeys; ++tile) {
    const int32_t end = std::min((tile + 1) * kTileKeys, seen.last + 1);
    load_tile(pass, block, args.head_dim, tile, end, args.carry_k, scratch.keys);
    load_tile(pass, block, args.head_dim, tile, end, args.carry_v, scratch.values);
    const size_t keys = computed_keys(tile, end);
    tile_by_block(scratch.keys, keys, scratch.queries_across, head_dim, lanes, scratch.scores);
    if (args.softcap > 0) cap_scores(scratch, lanes, keys, args.softcap);
    if (!all_visible(segment, block, group, args.window, tile)) mask_scores(scratch, lanes, keys, tile);
    fold_scores(scratch, lanes, keys);
    tile_across_by_block<Start::scaled>(scratch.values, columns, scratch.scores, keys, lanes,
                                        scratch.outs_across, scratch.delta);
  }
  finish_block(args, segment, block, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(attention_block);

void attention(const AttentionArgs& args, const PassArgs& pass, const Workers& workers) noexcept {
  constexpr int32_t kAllTiles = std::numeric_limits<int32_t>::max();
  const auto run = HWY_DYNAMIC_DISPATCH(attention_block);
  workers.pool.run([&](int worker) {
    auto& scratch = *reinterpret_cast<AttentionScratch*>(workers.scratch_of(worker));
    const int count = workers.pool.size();
    if (!args.fast) {
      visit_lane_blocks(args, pass, 0, kAllTiles, worker, count,
                        [&](const LaneBlock& block) { run(args, pass, block, scratch); });
      return;
    }
    visit_lane_blocks(
        args, pass, 0, kAllTiles, worker, count,
        [&](const LaneBlock& block) { run(args, pass, block, scratch); },
        [](const Segment& segment) { return !is_lone(segment); });
    auto& decode = *reinterpret_cast<DecodeScratch*>(workers.scratch_of(worker));
    decode_lone_rows(args, pass, worker, count, decode);
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
