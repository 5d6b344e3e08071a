// How sets are cut into passes.
#include "engine/pass.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace retro::engine {
namespace {

std::vector<int32_t> random_rows(uint64_t seed, size_t count, int32_t most) {
  const RandomStream stream(seed, "rows");
  std::vector<int32_t> rows(count);
  for (size_t i = 0; i < count; ++i)
    rows[i] = 1 + static_cast<int32_t>(stream.below(i, static_cast<uint64_t>(most)));
  return rows;
}

/// Sequences that take so many rows each: a target at the end.
class RowsOf {
 public:
  explicit RowsOf(std::span<const int32_t> rows) : rows_(rows.begin(), rows.end()) {
    for (const int32_t& last : rows_) sequences_.push_back({{}, {&last, 1}, {}, {}});
  }
  std::span<const Sequence> sequences() const { return sequences_; }

 private:
  std::vector<int32_t> rows_;
  std::vector<Sequence> sequences_;
};

Passes cut_passes(std::span<const Sequence> set, int32_t micro_batch) {
  Passes passes;
  passes.cut(set, micro_batch);
  return passes;
}

int32_t rows_of(std::span<const Piece> pass) {
  return std::accumulate(pass.begin(), pass.end(), 0,
                         [](int32_t sum, const Piece& piece) { return sum + piece.end - piece.begin; });
}

TEST(CutPasses, CoverEveryRowOnceInOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto rows = random_rows(seed, 1 + seed % 12, 40);
    const RowsOf set(rows);
    for (const int32_t micro_batch : {1, 2, 7, 32, 1000}) {
      const auto passes = cut_passes(set.sequences(), micro_batch);
      size_t sequence = 0;
      int32_t position = 0;
      int32_t carry = 0;
      for (size_t p = 0; p < passes.size(); ++p) {
        ASSERT_LE(rows_of(passes[p]), micro_batch);
        // Only the last pass has room left.
        ASSERT_TRUE(p + 1 == passes.size() || rows_of(passes[p]) == micro_batch);
        for (const Piece& piece : passes[p]) {
          ASSERT_LT(sequence, rows.size());
          ASSERT_EQ(piece.sequence, static_cast<int32_t>(sequence));
          ASSERT_EQ(piece.begin, position);
          ASSERT_EQ(piece.carry_begin, carry);
          ASSERT_GT(piece.end, piece.begin);
          ASSERT_LE(piece.end, rows[sequence]);
          position = piece.end;
          if (position < rows[sequence]) continue;
          carry += rows[sequence++];
          position = 0;
        }
      }
      EXPECT_EQ(sequence, rows.size());
    }
  }
}

TEST(CutPasses, SequencesWithoutTargetsTakeNoRows) {
  const std::vector<int32_t> last = {3};
  const std::vector<Sequence> set = {{}, {{}, last, {}, {}}, {}};
  const auto passes = cut_passes(set, 8);
  ASSERT_EQ(passes.size(), 1U);
  ASSERT_EQ(passes[0].size(), 1U);
  EXPECT_EQ(passes[0][0].sequence, 1);
  EXPECT_EQ(passes[0][0].carry_begin, 0);
}

TEST(PassPrefix, IsTheLongestThatFitsAndAtLeastOne) {
  const std::vector<int32_t> rows = {5, 3, 2, 9};
  const auto prefix = [&](int32_t micro_batch) {
    return pass_prefix(rows.size(), micro_batch, [&](size_t i) { return rows[i]; });
  };
  EXPECT_EQ(prefix(1), 1U);
  EXPECT_EQ(prefix(7), 1U);
  EXPECT_EQ(prefix(8), 2U);
  EXPECT_EQ(prefix(10), 3U);
  EXPECT_EQ(prefix(18), 3U);
  EXPECT_EQ(prefix(19), 4U);
  EXPECT_EQ(pass_prefix(0, 8, [](size_t) { return 1; }), 0U);
}

TEST(PassTotals, AreThoseOfThePassesThatAreCut) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto rows = random_rows(seed, 1 + seed % 20, 60);
    for (const int32_t micro_batch : {1, 7, 32, 64, 200, 5000}) {
      const RowsOf set(rows);
      PassTotals expected;
      for (auto rest = set.sequences(); !rest.empty();) {
        const size_t count = pass_prefix(rest.size(), micro_batch, [&](size_t i) { return rest[i].rows(); });
        const Passes passes = cut_passes(rest.first(count), micro_batch);
        for (size_t p = 0; p < passes.size(); ++p) {
          const int32_t pass_rows = rows_of(passes[p]);
          expected += {pass_rows, 1, pass_rows, 0, 0};
          if (p + 1 < passes.size()) expected += {0, 0, 0, 1, pass_rows};
        }
        rest = rest.subspan(count);
      }
      const PassTotals totals = pass_totals(rows, micro_batch);
      const std::string which = fmt::format("seed {} micro_batch {}", seed, micro_batch);
      EXPECT_EQ(totals.widest, expected.widest) << which;
      EXPECT_EQ(totals.passes, expected.passes) << which;
      EXPECT_EQ(totals.rows, expected.rows) << which;
      EXPECT_EQ(totals.repeated_passes, expected.repeated_passes) << which;
      EXPECT_EQ(totals.repeated_rows, expected.repeated_rows) << which;
    }
  }
  EXPECT_EQ(pass_totals({}, 8).passes, 0);
}

}  // namespace
}  // namespace retro::engine
