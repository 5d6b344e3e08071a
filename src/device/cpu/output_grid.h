// How the output of a product is shared among workers: a grid of rectangles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "device/cpu/linear.h"
#include "device/cpu/product.h"

namespace retro::device::cpu {

/// More workers down the rows means that each decodes the same weights again, which costs about what
/// `decode_rows` rows of the product do.
struct GridCosts {
  int64_t tile_height = 1;
  int64_t decode_rows = 0;
};

struct Grid {
  int down = 1;
  int across = 1;
};

/// Workers part at whole tiles of the widest vectors, which are whole runs of quants too.
constexpr int64_t kColumnGrain = 32;

inline int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

inline Grid choose_grid(int64_t rows, int64_t columns, const GridCosts& costs, int workers) {
  const int64_t tiles = divide_up(rows, costs.tile_height);
  const int64_t strips = divide_up(columns, kColumnGrain);
  Grid best;
  int64_t best_cost = 0;
  for (int down = 1; down <= workers && down <= tiles; ++down) {
    const int across = static_cast<int>(std::min<int64_t>(workers / down, strips));
    const int64_t cost =
        divide_up(strips, across) * (divide_up(tiles, down) * costs.tile_height + costs.decode_rows);
    if (down == 1 || cost < best_cost) {
      best = {down, across};
      best_cost = cost;
    }
  }
  return best;
}

/// Part `index` of `parts`, cut at multiples of `grain`.
inline std::pair<int64_t, int64_t> cut(int64_t count, int64_t grain, int index, int parts) {
  const int64_t blocks = divide_up(count, grain);
  return {std::min(count, blocks * index / parts * grain),
          std::min(count, blocks * (index + 1) / parts * grain)};
}

/// Calls work(part, scratch) on each worker that has a part of [rows, columns].
template <typename Work>
void over_output(int64_t rows, int64_t columns, const GridCosts& costs, Workspace& workspace, Work&& work) {
  if (rows <= 0 || columns <= 0) return;
  const Grid grid = choose_grid(rows, columns, costs, workspace.pool().size());
  const auto part = [&](int worker) {
    if (worker >= grid.down * grid.across) return;
    OutputPart output;
    std::tie(output.row_begin, output.row_end) =
        cut(rows, costs.tile_height, worker / grid.across, grid.down);
    std::tie(output.column_begin, output.column_end) =
        cut(columns, kColumnGrain, worker % grid.across, grid.across);
    work(output, workspace.scratch(worker));
  };
  if (grid.down * grid.across == 1) {
    part(0);
  } else {
    workspace.pool().run(part);
  }
}

}  // namespace retro::device::cpu
