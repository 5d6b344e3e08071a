#include "device/cpu/attention_tiles.h"

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

}  // namespace retro::device::cpu
