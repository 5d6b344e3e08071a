// Attention of segments with one row in the pass, head by head.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cpu/attention_tiles.h"
#include "device/op_args.h"

namespace retro::device::cpu {

/// Heads that read their keys and values together.
constexpr int32_t kDecodeHeads = 4;
constexpr int32_t kDecodeStride = kMaxHeadDim + 32;  // whole vectors behind the last element

/// Heads [head, head + count) of a segment's one row, which share a key head.
struct DecodeHeads {
  int32_t segment = 0;
  int32_t kv_head = 0;
  int32_t head = 0;
  int32_t count = 0;
};

struct DecodeScratch {
  alignas(64) float queries[kDecodeHeads][kDecodeStride];
  alignas(64) float outs[kDecodeHeads][kDecodeStride];
  alignas(64) float scores[kDecodeHeads][kTileKeys];
};
static_assert(sizeof(DecodeScratch) <= sizeof(AttentionScratch));

inline bool is_lone(const Segment& segment) {
  return segment.decoded && segment.row_end - segment.row_begin == 1;
}

/// Calls visit(heads) for this worker's share of the heads of lone rows: contiguous, and balanced by the
/// tiles they read.
template <typename Visit>
void visit_lone_heads(const AttentionArgs& args, const PassArgs& pass, int worker, int workers,
                      Visit&& visit) {
  const auto tiles = [&](const Segment& segment) {
    const Visible seen = visible(segment.row_position, args.window);
    return int64_t{seen.last / kTileKeys} - seen.first / kTileKeys + 1;
  };
  int64_t total = 0;
  for (const Segment& segment : pass.segments) {
    if (is_lone(segment)) total += tiles(segment) * args.heads;
  }
  const int32_t group = args.heads / args.kv_heads;
  int64_t before = 0;
  for (int32_t s = 0; s < static_cast<int32_t>(pass.segments.size()); ++s) {
    const Segment& segment = pass.segments[static_cast<size_t>(s)];
    if (!is_lone(segment)) continue;
    const int64_t cost = tiles(segment);
    DecodeHeads heads{s, 0, 0, 0};
    for (int32_t head = 0; head < args.heads; ++head, before += cost) {
      const bool mine = before * workers / total == worker;
      if (heads.count > 0 && (!mine || head / group != heads.kv_head || heads.count == kDecodeHeads)) {
        visit(heads);
        heads.count = 0;
      }
      if (!mine) continue;
      if (heads.count == 0) heads = {s, head / group, head, 0};
      ++heads.count;
    }
    if (heads.count > 0) visit(heads);
  }
}

/// This worker's share of the lone rows.
void decode_lone_rows(const AttentionArgs& args, const PassArgs& pass, int worker, int workers,
                      DecodeScratch& scratch) noexcept;

}  // namespace retro::device::cpu
