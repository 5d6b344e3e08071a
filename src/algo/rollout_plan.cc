#include "algo/rollout_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace retro::algo {

namespace {

uint64_t mixed(uint64_t seed, int64_t counter) {
  return splitmix64(seed) + static_cast<uint64_t>(counter);
}

}  // namespace

uint64_t completion_seed(uint64_t seed, int64_t position, int64_t member) {
  return RandomStream(mixed(seed, position), "completion").bits(static_cast<uint64_t>(member));
}

uint64_t evaluation_seed(uint64_t seed, int64_t index) {
  return RandomStream(seed, "evaluation").bits(static_cast<uint64_t>(index));
}

std::vector<size_t> step_order(size_t count, uint64_t seed, int64_t update, int64_t epoch) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const RandomStream stream(mixed(mixed(seed, update), epoch), "step order");
  for (size_t i = count; i > 1; --i) std::swap(order[i - 1], order[stream.below(i, i)]);
  return order;
}

std::vector<std::vector<size_t>> pack_completions(std::span<const int64_t> lengths,
                                                  std::span<const size_t> order, int64_t ctx) {
  std::vector<std::vector<size_t>> steps;
  int64_t used = 0;
  for (const size_t one : order) {
    RETRO_CHECK(lengths[one] <= ctx);
    if (steps.empty() || used + lengths[one] > ctx) {
      steps.emplace_back();
      used = 0;
    }
    steps.back().push_back(one);
    used += lengths[one];
  }
  return steps;
}

int64_t DynamicSampling::next_draw(int64_t sampled, int64_t live) const {
  return std::max<int64_t>(0, std::min(groups - live, groups * max_factor - sampled));
}

}  // namespace retro::algo
