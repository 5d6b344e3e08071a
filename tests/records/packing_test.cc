#include "data/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/random.h"

namespace retro::data {
namespace {

std::vector<int64_t> random_lengths(size_t count, int64_t longest) {
  const RandomStream stream(1, "lengths");
  std::vector<int64_t> lengths(count);
  for (size_t i = 0; i < count; ++i)
    lengths[i] = 1 + static_cast<int64_t>(stream.below(i, static_cast<uint64_t>(longest)));
  return lengths;
}

TEST(Packing, EveryRecordStandsOnceInAnEpochAndInsideItsWindow) {
  for (const int64_t ctx : {1, 7, 64, 500}) {
    for (const bool packing : {false, true}) {
      const auto lengths = random_lengths(1000, ctx);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int> seen(lengths.size());
        for (const Window& window : pack_epoch(lengths, {.ctx = ctx, .packing = packing, .seed = 3}, epoch)) {
          ASSERT_FALSE(window.records.empty());
          ASSERT_TRUE(packing || window.records.size() == 1);
          int64_t used = 0;
          for (const Placement& placed : window.records) {
            ASSERT_EQ(placed.offset, used);
            used += lengths[placed.record];
            ++seen[placed.record];
          }
          ASSERT_LE(used, ctx);
        }
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
      }
    }
  }
}

TEST(Packing, ShortRecordsFillTheirWindows) {
  const auto lengths = random_lengths(5000, 100);
  const int64_t sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const auto windows = pack_epoch(lengths, {.ctx = 512, .seed = 1}, 0);
  EXPECT_LE(static_cast<double>(windows.size()), 1.03 * static_cast<double>(sum) / 512 + 1);
}

TEST(Packing, FullWindowsDoNotCloseThoseWithRoom) {
  // One window keeps room for a short record while a hundred full ones come between.
  std::vector<int64_t> lengths(102, 10);
  lengths.front() = lengths.back() = 5;
  EXPECT_EQ(pack_epoch(lengths, {.ctx = 10, .shuffle = false}, 0).size(), 101U);
}

TEST(Packing, WithoutShuffleTheOrderIsTheFiles) {
  const std::vector<int64_t> lengths = {4, 4, 4, 2, 8};
  const auto windows = pack_epoch(lengths, {.ctx = 8, .shuffle = false}, 5);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[0].records[1].record, 1U);
  EXPECT_EQ(windows[0].records[1].offset, 4);
  EXPECT_EQ(windows[1].records[1].record, 3U);
  EXPECT_EQ(windows[2].records[0].record, 4U);
}

TEST(EpochOrder, IsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(epoch_order(100, true, 7, 3), epoch_order(100, true, 7, 3));
  EXPECT_NE(epoch_order(100, true, 7, 3), epoch_order(100, true, 7, 4));
  EXPECT_NE(epoch_order(100, true, 7, 3), epoch_order(100, true, 8, 3));
  EXPECT_TRUE(epoch_order(0, true, 1, 1).empty());
}

TEST(EpochOrder, AllOrdersAreAboutAsFrequent) {
  std::map<std::vector<size_t>, int> counts;
  constexpr int kDraws = 24000;
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[epoch_order(4, true, 9, epoch)];
  ASSERT_EQ(counts.size(), 24U);
  // 1000 expected of each; six standard deviations are 186.
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, kDraws / 24, 186);
}

}  // namespace
}  // namespace retro::data
