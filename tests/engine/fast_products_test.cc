// Sampling with activations in 8 bits, on a real model: near the exact products, and the same bits for a
// sequence alone and in company.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/real_models.h"
#include "tests/support/compare.h"

namespace retro::test {
namespace {

engine::EngineOptions sampling(bool fast) {
  engine::EngineOptions options;
  options.train = false;
  options.micro_batch = 64;
  options.set_rows = 200;
  options.fast_activations = fast;
  return options;
}

TEST(FastPlan, RoundsARowOnceForAllThatReadIt) {
  const model::Model model(cached("smollm2-135m-q4_1.gguf"));
  const engine::EnginePlan plan = engine::plan_engine(model, nullptr, sampling(true));
  const engine::EnginePlan exact = engine::plan_engine(model, nullptr, sampling(false));
  const auto count = [](const engine::EnginePlan& of, auto is) {
    return std::ranges::count_if(of.program.nodes,
                                 [&](const graph::Node& node) { return is(node.operation); });
  };
  const auto quantizes = [](const graph::Operation& op) {
    return std::holds_alternative<graph::op::Quantize>(op);
  };
  // What q, k and v read, the attention's output, what gate and up read, what down reads.
  EXPECT_EQ(count(plan, quantizes), 4 * model.hyperparameters().layers);
  EXPECT_EQ(count(exact, quantizes), 0);
  EXPECT_EQ(plan.program.nodes.size(), exact.program.nodes.size() + 4 * 30);
}

TEST(FastScores, AreNearTheExactOnesAndTheSameInCompany) {
  const model::Model model(cached("smollm2-135m-q4_1.gguf"));
  const auto device = device::make_cpu_device(2);
  std::ifstream file(RETRO_SOURCE_DIR "/tests/data/nll_smollm2.json");
  const auto reference = nlohmann::json::parse(file);
  std::vector<WholeText> texts;
  for (const auto& text : reference.at("texts")) {
    auto ids = text.at("ids").get<std::vector<int32_t>>();
    ids.resize(std::min<size_t>(ids.size(), 60));
    texts.emplace_back(std::move(ids));
  }
  const auto score = [&](engine::Engine& engine, size_t begin, size_t end) {
    std::vector<engine::Sequence> sequences;
    for (size_t i = begin; i < end; ++i) sequences.push_back(texts[i].sequence());
    engine.score(sequences);
    std::vector<float> logprobs;
    for (size_t i = begin; i < end; ++i)
      logprobs.insert(logprobs.end(), texts[i].logprobs.begin(), texts[i].logprobs.end());
    return logprobs;
  };
  engine::Engine exact_engine(*device, nullptr, engine::plan_engine(model, nullptr, sampling(false)));
  engine::Engine fast_engine(*device, nullptr, engine::plan_engine(model, nullptr, sampling(true)));
  const std::vector<float> exact = score(exact_engine, 0, texts.size());
  const std::vector<float> fast = score(fast_engine, 0, texts.size());
  double difference = 0;
  for (size_t i = 0; i < exact.size(); ++i) difference += std::abs(fast[i] - exact[i]);
  difference /= static_cast<double>(exact.size());
  double bias = 0;
  for (size_t i = 0; i < exact.size(); ++i) bias += fast[i] - exact[i];
  bias /= static_cast<double>(exact.size());
  std::printf("mean difference of a log-probability: %.4f, mean with sign %.4f\n", difference, bias);
  // Thirty layers of activations in 8 bits were measured to move a log-probability by 0.065 nats: a wrong
  // product moves it by whole nats.
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.1);
  EXPECT_LT(std::abs(bias), 0.03);
  std::vector<float> alone;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> one = score(fast_engine, i, i + 1);
    alone.insert(alone.end(), one.begin(), one.end());
  }
  EXPECT_TRUE(same_bits(alone, fast));
}

}  // namespace
}  // namespace retro::test
