// Memory of a program: every value gets an offset in one arena by the span of its life.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"

namespace retro::graph {

struct Placement {
  int64_t offset = 0;  // bytes into the arena
  int64_t bytes = 0;   // 0: the value is never used
  int64_t stride = 0;  // elements from row to row
  size_t first = 0;    // nodes between which it is alive, both included
  size_t last = 0;
};

struct Plan {
  std::vector<Placement> placements;  // by value
  int64_t arena_bytes = 0;
  /// What is alive at the fullest node, by part. They sum to arena_bytes (gaps are counted as activations).
  int64_t kept_bytes = 0;     // activations and checkpoints kept for the backward pass
  int64_t working_bytes = 0;  // activations and gradients of the moment
  int64_t logits_bytes = 0;   // the head's tiles
};

/// Places the values of `program` for passes of at most `rows` rows. Rows are padded so that their starts do
/// not fall on one cache set.
Plan make_plan(const Program& program, int64_t rows);

}  // namespace retro::graph
