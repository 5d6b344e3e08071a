// How attention cuts its work: blocks of query lanes, tiles of keys at fixed positions of the sequence.
//
// A lane is one (row, head): the heads that share a key head and consecutive rows of one segment lie side by
// side in a block, so that a tile of keys is read once for all of them. Tile t holds the positions [64t, 64t
// + 64) of the sequence, whichever segments they belong to.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/kernels.h"
#include "device/op_args.h"

namespace retro::device::cpu {

constexpr int32_t kTileKeys = 64;
constexpr int32_t kBlockLanes =
    48;  // three AVX-512 vectors, twice three AVX2 ones, four times three NEON ones
/// Elements from one row of a tile to the next: known when compiling, and not a power of two, so that rows do
/// not share cache sets.
constexpr int32_t kTileStride = kMaxHeadDim + 16;

/// Lanes [begin, begin + count) of a segment's rows in the pass: lane i is row row_begin + i / group, and
/// head kv_head·group + i mod group.
struct LaneBlock {
  int32_t segment = 0;
  int32_t kv_head = 0;
  int32_t begin = 0;
  int32_t count = 0;
};

struct LaneAddress {
  int32_t row = 0;
  int32_t position = 0;
  int32_t head = 0;
};

inline LaneAddress lane_address(const Segment& segment, const LaneBlock& block, int32_t group, int32_t lane) {
  const int32_t item = block.begin + lane;
  const int32_t offset = item / group;
  return {segment.row_begin + offset, segment.row_position + offset, block.kv_head * group + item % group};
}

/// The key positions [first, last] that a token at `position` sees.
struct Visible {
  int32_t first = 0;
  int32_t last = 0;
};

inline Visible visible(int32_t position, int32_t window) {
  return {window > 0 ? std::max(0, position - window + 1) : 0, position};
}

/// The union over a block's lanes.
inline Visible visible(const Segment& segment, const LaneBlock& block, int32_t group, int32_t window) {
  const int32_t first = segment.row_position + block.begin / group;
  const int32_t last = segment.row_position + (block.begin + block.count - 1) / group;
  return {visible(first, window).first, last};
}

/// A run of consecutive carry rows in a tile: tile rows [tile_row, tile_row + count).
struct KeyRun {
  int32_t tile_row = 0;
  int32_t count = 0;
  int64_t carry_row = 0;
};

/// Where the keys at positions [64·tile, end) of the path that ends in `segment` lie, in descending order of
/// position; end is at most 64·tile + 64. Returns the number of runs.
int32_t key_runs(std::span<const Segment> segments, int32_t segment, int32_t tile, int32_t end,
                 KeyRun (&runs)[kTileKeys]);

/// The position behind the last token of a segment, as far as this pass knows it.
int32_t segment_end(std::span<const Segment> segments, int32_t segment);

/// True where `segment` is `ancestor` or descends from it.
bool descends(std::span<const Segment> segments, int32_t segment, int32_t ancestor);

struct AnySegment {
  bool operator()(const Segment&) const { return true; }
};

/// Calls visit(block) for this worker's share of the lane blocks that see any of the tiles [first, end), of
/// the segments that are wanted(segment): contiguous, and balanced by the tiles they read.
template <typename Visit, typename Wanted = AnySegment>
void visit_lane_blocks(const AttentionArgs& args, const PassArgs& pass, int32_t first, int32_t end,
                       int worker, int workers, Visit&& visit, const Wanted& wanted = {}) {
  const int32_t group = args.heads / args.kv_heads;
  const auto each = [&](auto&& use) {
    for (int32_t s = 0; s < static_cast<int32_t>(pass.segments.size()); ++s) {
      const Segment& segment = pass.segments[static_cast<size_t>(s)];
      if (!wanted(segment)) continue;
      const int32_t items = (segment.row_end - segment.row_begin) * group;
      for (int32_t kv_head = 0; kv_head < args.kv_heads; ++kv_head) {
        for (int32_t begin = 0; begin < items; begin += kBlockLanes) {
          const LaneBlock block{s, kv_head, begin, std::min(kBlockLanes, items - begin)};
          const Visible seen = visible(segment, block, group, args.window);
          const int32_t tiles =
              std::min(seen.last / kTileKeys, end - 1) - std::max(seen.first / kTileKeys, first) + 1;
          if (tiles > 0) use(block, tiles);
        }
      }
    }
  };
  int64_t total = 0;
  each([&](const LaneBlock&, int64_t cost) { total += cost; });
  int64_t before = 0;
  each([&](const LaneBlock& block, int64_t cost) {
    if (before * workers / total == worker) visit(block);
    before += cost;
  });
}

/// The first and the last tile that any row of the pass sees.
struct TileRange {
  int32_t first = 0;
  int32_t last = 0;
};
TileRange tiles_seen(const AttentionArgs& args, const PassArgs& pass);

/// The scratch of one worker. Not every kernel uses every part; untouched pages cost nothing.
struct AttentionScratch {
  alignas(64) float keys[kTileKeys * kTileStride];
  alignas(64) float values[kTileKeys * kTileStride];
  alignas(64) float keys_across[kMaxHeadDim * kTileKeys];    // [head_dim][keys]
  alignas(64) float values_across[kMaxHeadDim * kTileKeys];  // [head_dim][keys]
  alignas(64) float dkeys[kTileKeys * kTileStride];
  alignas(64) float dvalues[kTileKeys * kTileStride];
  alignas(64) float queries[kBlockLanes * kTileStride];         // [lanes][head_dim]
  alignas(64) float douts[kBlockLanes * kTileStride];           // [lanes][head_dim]
  alignas(64) float queries_across[kMaxHeadDim * kBlockLanes];  // [head_dim][lanes]
  alignas(64) float douts_across[kMaxHeadDim * kBlockLanes];    // [head_dim][lanes]
  alignas(64) float outs_across[kMaxHeadDim * kBlockLanes];     // [head_dim][lanes]
  alignas(64) float scores[kTileKeys * kBlockLanes];
  alignas(64) float dscores[kTileKeys * kBlockLanes];
  // One number a lane.
  alignas(64) float maximum[kBlockLanes];
  alignas(64) float sum[kBlockLanes];
  alignas(64) float lse[kBlockLanes];
  alignas(64) float delta[kBlockLanes];
  alignas(64) int32_t first[kBlockLanes];
  alignas(64) int32_t last[kBlockLanes];
};

}  // namespace retro::device::cpu
