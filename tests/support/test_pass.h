// Passes over trees of segments, described by lengths.
#pragma once

#include <cstdint>
#include <vector>

#include "device/op_args.h"

namespace retro::test {

/// A segment of `length` tokens behind its parent, of which those at offsets [first, last) are rows of the
/// pass.
struct SegmentSpec {
  int32_t parent = -1;
  int32_t length = 0;
  int32_t first = 0;
  int32_t last = -1;  // -1: length
};

/// The arrays of a PassArgs. Segments lie in the carry one behind the other with a gap of `carry_gap` rows.
struct TestPass {
  explicit TestPass(const std::vector<SegmentSpec>& specs, int32_t carry_gap = 3);

  device::PassArgs args() const;
  int32_t rows() const { return static_cast<int32_t>(positions.size()); }

  std::vector<device::Segment> segments;
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> carry_rows;
  int32_t carry_size = 0;

  /// The carry rows that each row sees, found position by position.
  std::vector<std::vector<int64_t>> seen(int32_t window) const;
};

}  // namespace retro::test
