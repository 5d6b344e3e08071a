#include "data/packing.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace retro::data {

std::vector<size_t> epoch_order(size_t count, bool shuffle, uint64_t seed, int64_t epoch) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (!shuffle) return order;
  const RandomStream stream(splitmix64(seed) + static_cast<uint64_t>(epoch), "epoch order");
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[stream.below(i, i)]);
  return order;
}

std::vector<Window> pack_epoch(std::span<const int64_t> lengths, const PackingOptions& options,
                               int64_t epoch) {
  // A record goes back at most this far, so that packing stays near the epoch's order and linear in time.
  constexpr size_t kOpenWindows = 64;
  std::vector<Window> windows;
  std::vector<std::pair<size_t, int64_t>> open;  // window, tokens used; the oldest first
  for (const size_t record : epoch_order(lengths.size(), options.shuffle, options.seed, epoch)) {
    const int64_t length = lengths[record];
    RETRO_CHECK(length <= options.ctx);
    size_t at = options.packing ? 0 : open.size();
    while (at < open.size() && open[at].second + length > options.ctx) ++at;
    if (at == open.size()) {
      if (open.size() == kOpenWindows) open.erase(open.begin());
      windows.emplace_back();
      open.emplace_back(windows.size() - 1, 0);
      at = open.size() - 1;
    }
    windows[open[at].first].records.push_back({record, open[at].second});
    open[at].second += length;
    if (open[at].second == options.ctx) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return windows;
}

}  // namespace retro::data
