// The head: log-probabilities of queried tokens and their gradient, chunk by chunk.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/reference/head_ref.h"
#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/finite_difference.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::DType;
using device::HeadMode;
using device::Query;

TEST(HeadReference, GradientIsThatOfTheFunction) {
  HeadInput in;
  in.in = 4;
  in.vocabulary = 7;
  const RandomStream stream(2, "head");
  for (uint64_t i = 0; i < 12; ++i) in.h.push_back(2 * static_cast<double>(stream.uniform(i)) - 1);
  for (uint64_t i = 0; i < 28; ++i) in.w.push_back(2 * static_cast<double>(stream.uniform(100 + i)) - 1);
  in.queries = {{0, 3}, {2, 6}, {2, 6}, {2, 1}};
  in.softcap = 0.7;
  in.inverse_temperature = 1.5;
  const std::vector<double> g = {0.5, -1, 0.25, 2};
  const auto f = [&](const std::vector<double>& h) {
    HeadInput at = in;
    at.h = h;
    const std::vector<double> logprobs = head_ref(at).logprobs;
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += g[i] * logprobs[i];
    return sum;
  };
  EXPECT_TRUE(matches_differences(head_back_ref(in, g).dh, f, in.h));
}

struct Case {
  const char* name = "";
  DType dtype = DType::F32;
  int64_t in = 32;
  int64_t vocabulary = 100;
  int32_t rows = 9;
  double scale = 1;  // of the hidden rows
  float softcap = 0;
  float inverse_temperature = 1;
  std::vector<Query> queries;
};

struct HeadResult {
  std::vector<float> logprobs;
  std::vector<float> dh;
};

class Head : public testing::TestWithParam<Case> {
 protected:
  Head() { h.fill(RandomStream(4, "h"), GetParam().scale); }

  HeadResult run(device::Device& device, int32_t chunk_rows, HeadMode mode) const {
    const Case& c = GetParam();
    TestMatrix gathered(chunk_rows, c.in, c.in + 1);
    TestMatrix dgathered(chunk_rows, c.in, c.in + 2);
    TestMatrix logits(chunk_rows, c.vocabulary, c.vocabulary + 3);
    TestMatrix dh(c.rows, c.in, c.in + 5);
    std::vector<float> logprobs(c.queries.size(), std::nanf(""));
    const TestPass rows({{-1, c.rows}});
    device::PassArgs pass = rows.args();
    pass.queries = c.queries;
    pass.dlogprobs = dlogprobs;
    pass.logprobs = logprobs;
    pass.head_mode = mode;
    pass.inverse_temperature = c.inverse_temperature;
    device.run(device::HeadArgs{h.matrix(), w.weight(), dh.matrix(), gathered.matrix(), dgathered.matrix(),
                                logits.matrix(), chunk_rows, c.softcap},
               pass);
    EXPECT_TRUE(dh.gaps_untouched() && logits.gaps_untouched());
    return {logprobs, floats(dh)};
  }

  HeadInput reference() const {
    const Case& c = GetParam();
    HeadInput in{c.in, c.vocabulary, h.values(), w.doubles(), {}, c.softcap, c.inverse_temperature};
    for (const Query& q : c.queries) in.queries.push_back({q.row, q.token});
    return in;
  }

  TestMatrix h{GetParam().rows, GetParam().in, GetParam().in + 7};
  TestWeight w{GetParam().dtype, GetParam().vocabulary, GetParam().in, Fill::real};
  std::vector<float> dlogprobs = [] {
    std::vector<float> g;
    const RandomStream stream(4, "dlogprobs");
    for (size_t i = 0; i < GetParam().queries.size(); ++i) g.push_back(2 * stream.uniform(i) - 1);
    return g;
  }();
};

TEST_P(Head, IsTheFormulaWhateverTheChunk) {
  const Case& c = GetParam();
  const HeadInput in = reference();
  HeadResult first;
  for (const int32_t chunk_rows : {1, 2, 5, 64}) {
    HeadResult result;
    same_under_every_setting([&](device::Device& device) {
      result = run(device, chunk_rows, HeadMode::backward);
      std::vector<float> all = result.logprobs;
      append(all, result.dh);
      return all;
    });
    if (first.dh.empty()) first = result;
    EXPECT_TRUE(same_bits(result.logprobs, first.logprobs)) << chunk_rows << " rows a chunk";
    EXPECT_TRUE(same_bits(result.dh, first.dh, c.in)) << chunk_rows << " rows a chunk";
  }
  const HeadOutput output = head_ref(in);
  std::vector<double> bounds;
  for (size_t i = 0; i < output.logprobs.size(); ++i) {
    bounds.push_back(product_bound(4, 1 + output.magnitude[i], output.logprobs[i]));
  }
  EXPECT_TRUE(within(first.logprobs, output.logprobs, bounds));
  const HeadGradient gradient = head_back_ref(in, {dlogprobs.begin(), dlogprobs.end()});
  // One chain of products runs over up to 4096 words; its roundings of either sign grow like the root of
  // that.
  const auto terms = static_cast<int64_t>(std::sqrt(std::min<int64_t>(c.vocabulary, 4096)));
  bounds.clear();
  for (size_t i = 0; i < gradient.dh.size(); ++i) {
    bounds.push_back(product_bound(terms, gradient.magnitude[i], gradient.dh[i]) + 1e-36);
  }
  EXPECT_TRUE(within(first.dh, gradient.dh, bounds, c.in));
}

TEST_P(Head, ScoresWithTheSameBitsAndLeavesTheGradientAlone) {
  const auto device = device::make_cpu_device(2);
  const HeadResult scored = run(*device, 3, HeadMode::score);
  EXPECT_TRUE(same_bits(scored.logprobs, run(*device, 3, HeadMode::backward).logprobs));
  for (const float value : scored.dh) EXPECT_TRUE(std::isnan(value));
}

std::vector<Query> every_row(int32_t rows, int64_t vocabulary) {
  std::vector<Query> queries;
  for (int32_t r = 0; r < rows; ++r) queries.push_back({r, static_cast<int32_t>((r * 37 + 11) % vocabulary)});
  return queries;
}

std::vector<Case> cases() {
  const std::vector<Query> sparse = {{1, 0}, {1, 99}, {1, 99}, {4, 50}, {7, 3}};
  return {
      {.name = "every_row", .queries = every_row(9, 100)},
      {.name = "few_rows_several_queries", .queries = sparse},
      {.name = "vocabulary_of_one_block", .vocabulary = 4096, .rows = 3, .queries = every_row(3, 4096)},
      {.name = "vocabulary_of_two_and_a_bit", .vocabulary = 8199, .rows = 7, .queries = every_row(7, 8199)},
      {.name = "tiny_vocabulary", .vocabulary = 2, .rows = 3, .queries = every_row(3, 2)},
      {.name = "quantized",
       .dtype = DType::Q8_0,
       .in = 64,
       .vocabulary = 5001,
       .queries = every_row(9, 5001)},
      {.name = "peaked", .scale = 30, .queries = sparse},
      {.name = "capped", .scale = 4, .softcap = 3, .queries = sparse},
      {.name = "tempered", .inverse_temperature = 1.7F, .queries = sparse},
      {.name = "capped_and_tempered",
       .vocabulary = 5000,
       .scale = 4,
       .softcap = 2.5F,
       .inverse_temperature = 0.6F,
       .queries = every_row(9, 5000)},
      {.name = "one_row", .vocabulary = 300, .rows = 1, .queries = {{0, 299}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, Head, testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.name); });

// With hidden rows of zero every token is as likely: the log-probability is -log of the vocabulary, and the
// gradient with respect to h of one query is w[token] less the mean of w.
TEST(HeadForward, OfEqualLogitsIsUniform) {
  const auto device = device::make_cpu_device(2);
  const int64_t vocabulary = 6007;
  const TestWeight w(DType::F32, vocabulary, 8, Fill::exact);
  TestMatrix h(1, 8);
  h.fill(0.0);
  TestMatrix scratch(1, 8);
  TestMatrix dscratch(1, 8);
  TestMatrix logits(1, vocabulary);
  TestMatrix dh(1, 8);
  const TestPass rows({{-1, 1}});
  device::PassArgs pass = rows.args();
  const std::vector<Query> queries = {{0, 17}};
  const std::vector<float> g = {1};
  std::vector<float> logprobs(1);
  pass.queries = queries;
  pass.dlogprobs = g;
  pass.logprobs = logprobs;
  pass.head_mode = HeadMode::backward;
  device->run(device::HeadArgs{h.matrix(), w.weight(), dh.matrix(), scratch.matrix(), dscratch.matrix(),
                               logits.matrix(), 1},
              pass);
  EXPECT_FLOAT_EQ(logprobs[0], -std::log(6007.0F));
  for (int64_t i = 0; i < 8; ++i) {
    double mean = 0;
    for (int64_t t = 0; t < vocabulary; ++t) mean += w.values()[static_cast<size_t>(t * 8 + i)] / 6007.0;
    const double expected = w.values()[static_cast<size_t>(17 * 8 + i)] - mean;
    EXPECT_NEAR(dh.get(0, i), expected, product_bound(64, 10, expected));
  }
}

}  // namespace
}  // namespace retro::test
