// Sets with trees: completions that share one copy of their prompt have the log-probabilities and the
// gradient of as many whole sequences, however they are cut; and log-probabilities at a temperature.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>

#include "base/random.h"
#include "engine/engine.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

constexpr int32_t kPrompt = 13;
constexpr std::array kLengths = {9, 1, 17, 6};

/// Completions of one prompt, each token with a weight of its own.
struct Group {
  std::vector<std::vector<int32_t>> whole,
      own;  // prompt and completion; its last prompt token and completion
  std::vector<std::vector<int32_t>> whole_targets, own_targets;
  std::vector<std::vector<float>> logprobs, dlogprobs;
  std::vector<int32_t> prompt;

  Group() {
    const RandomStream stream(4, "tokens");
    uint64_t i = 0;
    const auto token = [&] { return 3 + static_cast<int32_t>(stream.below(i++, 90)); };
    for (int32_t p = 0; p < kPrompt; ++p) prompt.push_back(token());
    for (const int32_t length : kLengths) {
      auto& all = whole.emplace_back(prompt);
      for (int32_t k = 0; k < length; ++k) all.push_back(token());
      own.emplace_back(all.begin() + kPrompt - 1, all.end());
      auto& targets = own_targets.emplace_back(static_cast<size_t>(length));
      std::iota(targets.begin(), targets.end(), 1);
      auto& behind = whole_targets.emplace_back(targets);
      for (int32_t& target : behind) target += kPrompt - 1;
      logprobs.emplace_back(targets.size());
      auto& d = dlogprobs.emplace_back();
      for (int32_t k = 0; k < length; ++k) d.push_back(stream.uniform(1000 + i++) - 0.5F);
    }
  }

  std::vector<engine::Sequence> alone() {
    std::vector<engine::Sequence> set;
    for (size_t c = 0; c < whole.size(); ++c)
      set.push_back({whole[c], whole_targets[c], logprobs[c], dlogprobs[c]});
    return set;
  }
  std::vector<engine::Sequence> tree() {
    std::vector<engine::Sequence> set(1);
    set[0].tokens = prompt;
    set[0].shared_rows = kPrompt - 1;
    for (size_t c = 0; c < own.size(); ++c) {
      set.push_back({own[c], own_targets[c], logprobs[c], dlogprobs[c]});
      set.back().parent = 0;
    }
    return set;
  }
};

class Tree : public ::testing::TestWithParam<const char*> {
 protected:
  Tree() : device_(device::make_cpu_device(2)) {
    write_toy_model(folder_ / "toy.gguf", toy_model(GetParam()));
    model_ = std::make_unique<model::Model>(folder_ / "toy.gguf");
    adapter_ = model::make_adapter(
        model::choose_targets(*model_, std::vector<std::string>{"auto"}, 4, 8, tensor::DType::F32), 1);
    const RandomStream stream(1, "b");
    for (size_t i = 0; i < adapter_.weights.size(); ++i) {
      if (adapter_.weights[i] == 0) adapter_.weights[i] = 0.1F * (stream.uniform(i) - 0.5F);
    }
  }

  engine::Engine engine(int32_t micro_batch, int32_t rows, float temperature = 1) {
    engine::EngineOptions options;
    options.micro_batch = micro_batch;
    options.set_rows = rows;
    options.context = 64;
    options.temperature = temperature;
    return {*device_, &adapter_, engine::plan_engine(*model_, &adapter_.layout, options)};
  }

  support::TempFolder folder_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<model::Model> model_;
  model::Adapter adapter_;
};

double distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

TEST_P(Tree, ScoresTheBitsOfWholeSequences) {
  Group alone;
  Group tree;
  engine(200, 200).score(alone.alone());
  for (const int32_t micro_batch : {200, 16, 5}) {
    engine(micro_batch, 200).score_set(tree.tree());
    EXPECT_EQ(tree.logprobs, alone.logprobs) << micro_batch;
  }
}

TEST_P(Tree, HasTheGradientOfWholeSequences) {
  Group alone;
  auto whole = engine(200, 200);
  whole.accumulate(alone.alone());
  for (const int32_t micro_batch : {200, 16, 5}) {
    Group tree;
    const auto weights = tree.dlogprobs;
    auto shared = engine(micro_batch, 200);
    for (auto& d : tree.dlogprobs) std::fill(d.begin(), d.end(), NAN);
    shared.accumulate_coupled(tree.tree(), [&] {
      EXPECT_EQ(tree.logprobs, alone.logprobs);
      for (size_t c = 0; c < weights.size(); ++c) std::ranges::copy(weights[c], tree.dlogprobs[c].begin());
    });
    EXPECT_LT(distance(shared.gradient(), whole.gradient()), 1e-5) << micro_batch;
  }
}

// log softmax(z / T): the temperature divides log-odds, and the gradient is the slope.
TEST_P(Tree, TemperatureDividesLogits) {
  Group cold;
  auto tempered = engine(200, 200, 0.5F);
  tempered.accumulate(cold.alone());
  Group warm;
  auto plain = engine(200, 200);
  plain.score(warm.alone());
  EXPECT_NE(cold.logprobs, warm.logprobs);
  // A step along the gradient changes Σ d·logprob by |gradient|²·step.
  const auto objective = [&] {
    Group group;
    engine(200, 200, 0.5F).score(group.alone());
    double sum = 0;
    for (size_t c = 0; c < group.logprobs.size(); ++c) {
      sum += std::inner_product(group.logprobs[c].begin(), group.logprobs[c].end(),
                                group.dlogprobs[c].begin(), 0.0);
    }
    return sum;
  };
  const std::vector<float> gradient(tempered.gradient().begin(), tempered.gradient().end());
  const std::vector<float> weights = adapter_.weights;
  const double square = std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
  const double step = 2e-3 / std::sqrt(square);
  const auto at = [&](double distance) {
    for (size_t i = 0; i < weights.size(); ++i)
      adapter_.weights[i] = static_cast<float>(weights[i] + distance * gradient[i]);
    return objective();
  };
  const double slope = (at(step) - at(-step)) / (2 * step);
  EXPECT_NEAR(slope / square, 1, 2e-2);
}

// The hidden rows that were asked for are those of the whole sequences.
TEST_P(Tree, GivesHiddenRows) {
  const auto width = static_cast<size_t>(model_->hyperparameters().embedding);
  const auto rows_of = [&](Group& group, std::vector<engine::Sequence> set, int32_t micro_batch) {
    std::vector<std::vector<float>> rows;
    for (const auto& targets : group.own_targets) rows.emplace_back(targets.size() * width);
    const size_t first = set.size() - rows.size();
    for (size_t c = 0; c < rows.size(); ++c) set[first + c].features = rows[c];
    engine(micro_batch, 200).score_set(set);
    return rows;
  };
  Group group;
  const auto whole = rows_of(group, group.alone(), 200);
  EXPECT_NE(whole[0][0], 0);
  EXPECT_EQ(rows_of(group, group.tree(), 16), whole);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Tree, ::testing::Values("llama", "gemma3"));

}  // namespace
}  // namespace retro::test
