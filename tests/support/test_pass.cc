#include "tests/support/test_pass.h"

namespace retro::test {

TestPass::TestPass(const std::vector<SegmentSpec>& specs, int32_t carry_gap) {
  std::vector<int32_t> ends;
  for (const SegmentSpec& spec : specs) {
    const int32_t last = spec.last < 0 ? spec.length : spec.last;
    device::Segment segment;
    segment.parent = spec.parent;
    segment.position_begin = spec.parent < 0 ? 0 : ends[static_cast<size_t>(spec.parent)];
    segment.carry_begin = carry_size;
    segment.row_begin = rows();
    segment.row_end = segment.row_begin + last - spec.first;
    segment.row_position = segment.position_begin + spec.first;
    for (int32_t i = spec.first; i < last; ++i) {
      positions.push_back(segment.position_begin + i);
      carry_rows.push_back(segment.carry_begin + i);
      tokens.push_back(0);
    }
    ends.push_back(segment.position_begin + spec.length);
    carry_size += spec.length + carry_gap;
    segment.decoded = segment.row_end - segment.row_begin == 1;
    segments.push_back(segment);
  }
}

device::PassArgs TestPass::args() const {
  device::PassArgs pass;
  pass.rows = rows();
  pass.tokens = tokens;
  pass.positions = positions;
  pass.carry_rows = carry_rows;
  pass.segments = segments;
  return pass;
}

std::vector<std::vector<int64_t>> TestPass::seen(int32_t window) const {
  std::vector<std::vector<int64_t>> all;
  for (size_t s = 0; s < segments.size(); ++s) {
    for (int32_t row = segments[s].row_begin; row < segments[s].row_end; ++row) {
      const int32_t position = positions[static_cast<size_t>(row)];
      std::vector<int64_t> keys;
      int32_t end = position + 1;
      for (auto at = static_cast<int32_t>(s); at >= 0; at = segments[static_cast<size_t>(at)].parent) {
        const device::Segment& owner = segments[static_cast<size_t>(at)];
        for (int32_t p = owner.position_begin; p < end; ++p) {
          if (window == 0 || p > position - window)
            keys.push_back(owner.carry_begin + p - owner.position_begin);
        }
        end = owner.position_begin;
      }
      all.push_back(keys);
    }
  }
  return all;
}

}  // namespace retro::test
