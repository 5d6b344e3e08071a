// An epoch's order, and whole records packed into windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace retro::data {

/// A record that begins at token `offset` of its window.
struct Placement {
  size_t record = 0;
  int64_t offset = 0;
};

struct Window {
  std::vector<Placement> records;
};

struct PackingOptions {
  int64_t ctx = 0;      // tokens of a window; no record is longer
  bool packing = true;  // several whole records share a window
  bool shuffle = true;
  uint64_t seed = 0;
};

/// The order of `count` records in an epoch, a function of (seed, epoch) alone (Fisher and Yates).
std::vector<size_t> epoch_order(size_t count, bool shuffle, uint64_t seed, int64_t epoch);

/// Every record once: first fit, in the epoch's order, among the latest few windows that are not full.
std::vector<Window> pack_epoch(std::span<const int64_t> lengths, const PackingOptions& options,
                               int64_t epoch);

}  // namespace retro::data
