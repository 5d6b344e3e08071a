#include "device/cpu/attention_tiles.h"

#include <limits>

namespace retro::device::cpu {

size_t attention_scratch_bytes() {
  return (sizeof(AttentionScratch) + 4095) / 4096 * 4096;
}

int32_t key_runs(std::span<const Segment> segments, int32_t segment, int32_t tile, int32_t end,
                 KeyRun (&runs)[kTileKeys]) {
  const int32_t tile_begin = tile * kTileKeys;
  int32_t count = 0;
  while (segment >= 0 && end > tile_begin) {
    const Segment& owner = segments[static_cast<size_t>(segment)];
    const int32_t begin = std::max(tile_begin, owner.position_begin);
    if (begin < end) {
      runs[count++] = {begin - tile_begin, end - begin,
                       int64_t{owner.carry_begin} + begin - owner.position_begin};
      end = begin;
    }
    segment = owner.parent;
  }
  return count;
}

int32_t segment_end(std::span<const Segment> segments, int32_t segment) {
  const Segment& own = segments[static_cast<size_t>(segment)];
  int32_t end = own.position_begin;
  if (own.row_end > own.row_begin) end = own.row_position + own.row_end - own.row_begin;
  for (size_t child = static_cast<size_t>(segment) + 1; child < segments.size(); ++child) {
    if (segments[child].parent == segment) end = std::max(end, segments[child].position_begin);
  }
  return end;
}

bool descends(std::span<const Segment> segments, int32_t segment, int32_t ancestor) {
  while (segment > ancestor) segment = segments[static_cast<size_t>(segment)].parent;
  return segment == ancestor;
}

TileRange tiles_seen(const AttentionArgs& args, const PassArgs& pass) {
  TileRange range{std::numeric_limits<int32_t>::max(), -1};
  for (const Segment& segment : pass.segments) {
    if (segment.row_begin == segment.row_end) continue;
    const int32_t last = segment.row_position + segment.row_end - segment.row_begin - 1;
    range.first = std::min(range.first, visible(segment.row_position, args.window).first / kTileKeys);
    range.last = std::max(range.last, last / kTileKeys);
  }
  return range;
}

}  // namespace retro::device::cpu
