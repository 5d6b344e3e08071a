// How the gradients of keys and values are cut: the positions of one segment in one tile have one owner.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/attention_tiles.h"
#include "device/op_args.h"

namespace retro::device::cpu {

/// The keys of `segment` at positions [begin, end), all in one tile, of one key head.
struct KeyBlock {
  int32_t segment = 0;
  int32_t kv_head = 0;
  int32_t begin = 0;
  int32_t end = 0;
  int64_t carry_offset = 0;  // carry row less position

  int32_t tile() const { return begin / kTileKeys; }
  int64_t carry_row(int32_t position) const { return carry_offset + position; }
};

/// The rows of `segment` in the pass that see any of `keys`, as offsets from row_begin: [begin, end).
struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
};

inline RowRange rows_that_see(const Segment& segment, const KeyBlock& keys, int32_t window) {
  const int32_t rows = segment.row_end - segment.row_begin;
  const int32_t first = std::clamp(keys.begin - segment.row_position, 0, rows);
  if (window == 0) return {first, rows};
  return {first, std::clamp(keys.end - 1 + window - segment.row_position, first, rows)};
}

/// Calls visit(segment, lane block) for the lanes that see any of `keys`: segments, rows and heads in
/// ascending order.
template <typename Visit>
void visit_lane_blocks_that_see(const AttentionArgs& args, const PassArgs& pass, const KeyBlock& keys,
                                Visit&& visit) {
  const int32_t group = args.heads / args.kv_heads;
  for (int32_t s = keys.segment; s < static_cast<int32_t>(pass.segments.size()); ++s) {
    const Segment& segment = pass.segments[static_cast<size_t>(s)];
    if (segment.row_begin == segment.row_end || !descends(pass.segments, s, keys.segment)) continue;
    const RowRange rows = rows_that_see(segment, keys, args.window);
    for (int32_t begin = rows.begin * group; begin < rows.end * group; begin += kBlockLanes) {
      visit(segment, LaneBlock{s, keys.kv_head, begin, std::min(kBlockLanes, rows.end * group - begin)});
    }
  }
}

/// Calls visit(key block) for this worker's share of the key blocks in the tiles [first, end): contiguous,
/// and balanced by the rows that see them.
template <typename Visit>
void visit_key_blocks(const AttentionArgs& args, const PassArgs& pass, int32_t first_tile, int32_t end_tile,
                      int worker, int workers, Visit&& visit) {
  const auto each = [&](auto&& use) {
    for (int32_t s = 0; s < static_cast<int32_t>(pass.segments.size()); ++s) {
      const Segment& segment = pass.segments[static_cast<size_t>(s)];
      const int32_t from = std::max(segment.position_begin, first_tile * kTileKeys);
      const int32_t end = std::min(segment_end(pass.segments, s), end_tile * kTileKeys);
      for (int32_t kv_head = 0; kv_head < args.kv_heads; ++kv_head) {
        for (int32_t begin = from; begin < end;) {
          const int32_t next = std::min(end, (begin / kTileKeys + 1) * kTileKeys);
          use(KeyBlock{s, kv_head, begin, next, int64_t{segment.carry_begin} - segment.position_begin});
          begin = next;
        }
      }
    }
  };
  const auto cost = [&](const KeyBlock& keys) {
    int64_t rows = 0;
    for (int32_t s = keys.segment; s < static_cast<int32_t>(pass.segments.size()); ++s) {
      if (!descends(pass.segments, s, keys.segment)) continue;
      const RowRange seeing = rows_that_see(pass.segments[static_cast<size_t>(s)], keys, args.window);
      rows += seeing.end - seeing.begin;
    }
    return rows;
  };
  int64_t total = 0;
  each([&](const KeyBlock& keys) { total += cost(keys); });
  int64_t before = 0;
  each([&](const KeyBlock& keys) {
    const int64_t rows = cost(keys);
    if (rows > 0 && before * workers / total == worker) visit(keys);
    before += rows;
  });
}

}  // namespace retro::device::cpu
