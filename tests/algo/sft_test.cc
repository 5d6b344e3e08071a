// Which tokens the steps of supervised fine-tuning train.
#include "algo/sft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace retro::algo {
namespace {

/// Records of 1 to `longest` tokens; about half of the tokens behind the first are trained.
std::vector<data::TrainingRecord> random_records(uint64_t seed, size_t count, int64_t longest) {
  const RandomStream stream(seed, "records");
  std::vector<data::TrainingRecord> records(count);
  uint64_t draw = 0;
  for (auto& record : records) {
    const auto length = 1 + static_cast<size_t>(stream.below(draw++, static_cast<uint64_t>(longest)));
    for (size_t t = 0; t < length; ++t) {
      record.ids.push_back(static_cast<int32_t>(stream.below(draw++, 100)));
      record.trained.push_back(t > 0 && stream.below(draw++, 2) == 1 ? 1 : 0);
    }
  }
  return records;
}

std::vector<data::Window> windows_of(std::span<const data::TrainingRecord> records, int64_t ctx) {
  std::vector<int64_t> lengths;
  for (const auto& record : records) lengths.push_back(static_cast<int64_t>(record.ids.size()));
  return data::pack_epoch(lengths, {.ctx = ctx, .seed = 5}, 0);
}

int64_t trained_in(const data::TrainingRecord& record, int32_t begin, int32_t end) {
  return std::count(record.trained.begin() + begin, record.trained.begin() + end, 1);
}

TEST(CutSteps, TrainEveryTokenOnceInStepsOfTheirSize) {
  constexpr int64_t kCtx = 64;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto records = random_records(seed, 200, kCtx);
    const auto windows = windows_of(records, kCtx);
    for (const int64_t step_tokens : {1, 8, 32, 64, 128, 256, 64000}) {
      std::vector<std::vector<int>> seen;
      for (const auto& record : records) seen.emplace_back(record.ids.size(), 0);
      for (const SftStep& step : cut_steps(windows, records, kCtx, step_tokens)) {
        int64_t trained = 0;
        int64_t tokens = 0;
        for (const RecordSpan& span : step.spans) {
          const auto& record = records[span.record];
          ASSERT_GE(span.begin, 0);
          ASSERT_LT(span.begin, span.end);
          ASSERT_LE(static_cast<size_t>(span.end), record.ids.size());
          ASSERT_GT(trained_in(record, span.begin, span.end), 0);
          trained += trained_in(record, span.begin, span.end);
          tokens += span.end - span.begin;
          for (int32_t t = span.begin; t < span.end; ++t) ++seen[span.record][static_cast<size_t>(t)];
        }
        ASSERT_LE(tokens, step_tokens);
        ASSERT_EQ(step.trained, trained);
        ASSERT_GT(step.trained, 0);
      }
      for (size_t r = 0; r < records.size(); ++r) {
        for (size_t t = 0; t < seen[r].size(); ++t) {
          ASSERT_LE(seen[r][t], 1);
          ASSERT_TRUE(records[r].trained[t] == 0 || seen[r][t] == 1) << "record " << r << " token " << t;
        }
      }
    }
  }
}

TEST(CutSteps, TakeWindowsInOrderSoManyAtATime) {
  // Five full windows, all trained but the first token.
  data::TrainingRecord record;
  record.ids.assign(8, 1);
  record.trained.assign(8, 1);
  record.trained[0] = 0;
  const std::vector<data::TrainingRecord> records(5, record);
  std::vector<data::Window> windows;
  for (size_t r = 0; r < 5; ++r) windows.push_back({{{r, 0}}});
  const auto steps = cut_steps(windows, records, 8, 16);
  ASSERT_EQ(steps.size(), 3U);
  size_t next = 0;
  for (const SftStep& step : steps) {
    EXPECT_EQ(step.trained, next == 4 ? 7 : 14);
    for (const RecordSpan& span : step.spans) {
      EXPECT_EQ(span.record, next++);
      EXPECT_EQ(span.begin, 0);
      EXPECT_EQ(span.end, 8);
    }
  }
  EXPECT_EQ(next, 5U);
}

TEST(CutSteps, PartsWithoutATrainedTokenMakeNoStep) {
  data::TrainingRecord record;
  record.ids.assign(8, 1);
  record.trained = {0, 0, 0, 0, 0, 0, 1, 0};
  const std::vector<data::TrainingRecord> records = {record};
  const std::vector<data::Window> windows = {{{{0, 0}}}};
  const auto steps = cut_steps(windows, records, 8, 2);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].spans[0].begin, 6);
  EXPECT_EQ(steps[0].trained, 1);
}

TEST(SftBatch, AsksForEachTrainedTokenAndWeighsThemAlike) {
  const auto records = random_records(3, 50, 32);
  SftBatch batch;
  for (const SftStep& step : cut_steps(windows_of(records, 32), records, 32, 16)) {
    const auto sequences = batch.build(step, records);
    ASSERT_EQ(sequences.size(), step.spans.size());
    EXPECT_EQ(batch.trained(), step.trained);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const RecordSpan& span = step.spans[i];
      const auto& record = records[span.record];
      EXPECT_EQ(sequences[i].tokens.data(), record.ids.data());
      std::vector<int32_t> targets;
      for (int32_t t = span.begin; t < span.end; ++t) {
        if (record.trained[static_cast<size_t>(t)] != 0) targets.push_back(t);
      }
      EXPECT_TRUE(std::ranges::equal(sequences[i].targets, targets));
      for (const float weight : sequences[i].dlogprobs)
        EXPECT_EQ(weight, -1.0F / static_cast<float>(step.trained));
    }
  }
}

TEST(Rows, AreThoseOfTheBatchsSequences) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto records = random_records(seed, 30, 64);
    SftBatch batch;
    for (const int64_t step_tokens : {8, 64, 256}) {
      for (const SftStep& step : cut_steps(windows_of(records, 64), records, 64, step_tokens)) {
        std::vector<int32_t> rows;
        for (const auto& sequence : batch.build(step, records)) rows.push_back(sequence.rows());
        ASSERT_EQ(step_rows(step, records), rows);
        ASSERT_LE(*std::ranges::max_element(rows), longest_rows(records));
      }
    }
    int32_t longest = 0;
    for (const auto& sequence : batch.build(records)) longest = std::max(longest, sequence.rows());
    EXPECT_EQ(longest_rows(records), longest);
  }
  EXPECT_EQ(longest_rows({}), 0);
}

}  // namespace
}  // namespace retro::algo
