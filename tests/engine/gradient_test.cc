// The LoRA gradient of real models against PyTorch in f32 (tools/references/lora_gradient.py), which stores
// of each factor's gradient its norm and eight random ±1 projections. E[(p·(g−ĝ))²] = |g−ĝ|², so projections
// over hundreds of tensors estimate the relative distance well.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "tests/engine/real_models.h"

namespace retro::test {
namespace {

constexpr int kProjections = 8;

struct Case {
  const char* model;
  const char* reference;
};

// Element i of a factor as the file has it: A [rank, in], B [out, rank].
int64_t flat_index(const model::LoraTarget& target, bool a, int64_t i) {
  if (a) return target.a_offset + i;
  const int64_t row = i / target.rank;
  return target.bt_offset + (i % target.rank) * target.out + row;
}

model::Adapter reference_adapter(const model::Model& model, int32_t rank, float alpha) {
  const std::vector<std::string> targets = {"q", "k", "v", "o", "ffn_gate", "ffn_up", "ffn_down"};
  model::Adapter adapter =
      model::make_adapter(model::choose_targets(model, targets, rank, alpha, tensor::DType::F32), 0);
  for (const auto& target : adapter.layout.targets) {
    for (const bool a : {true, false}) {
      const uint64_t key = fnv1a64(target.name + (a ? ".lora_a" : ".lora_b"));
      const double amplitude = a ? 1.0 / std::sqrt(static_cast<double>(target.in)) : 0.05;
      const int64_t count = target.rank * (a ? target.in : target.out);
      for (int64_t i = 0; i < count; ++i) {
        const double u = static_cast<double>(splitmix64(key + static_cast<uint64_t>(i)) >> 40) * 0x1p-24;
        adapter.weights[static_cast<size_t>(flat_index(target, a, i))] =
            static_cast<float>((2 * u - 1) * amplitude);
      }
    }
  }
  return adapter;
}

std::vector<float> gradient_of(device::Device& device, const model::Model& model,
                               const model::Adapter& adapter, const engine::EngineOptions& options,
                               WholeText& text) {
  engine::EngineOptions sized = options;
  sized.set_rows = text.rows();
  engine::Engine engine(device, &adapter, engine::plan_engine(model, &adapter.layout, sized));
  engine.clear_gradient();
  const engine::Sequence sequence = text.sequence();
  engine.accumulate({&sequence, 1});
  return {engine.gradient().begin(), engine.gradient().end()};
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

class Gradient : public ::testing::TestWithParam<Case> {};

TEST_P(Gradient, EqualsPyTorchAtEveryMicroBatch) {
  const auto device = device::make_cpu_device(2);
  const model::Model model(cached(GetParam().model));
  std::ifstream file(std::string(RETRO_SOURCE_DIR "/tests/data/") + GetParam().reference);
  const auto reference = nlohmann::json::parse(file);
  const model::Adapter adapter =
      reference_adapter(model, reference.at("rank").get<int32_t>(), reference.at("alpha").get<float>());
  WholeText text(reference.at("ids").get<std::vector<int32_t>>());

  engine::EngineOptions options;
  options.kv_dtype = tensor::DType::F32;
  options.micro_batch = text.rows();
  const std::vector<float> whole = gradient_of(*device, model, adapter, options, text);
  EXPECT_NEAR(text.mean_nll(), reference.at("loss").get<double>(), 5e-4 * text.mean_nll());

  double squared_difference = 0;
  double squared_norm = 0;
  size_t factors = 0;
  for (const auto& target : adapter.layout.targets) {
    for (const bool a : {true, false}) {
      const std::string name = target.name + (a ? ".lora_a" : ".lora_b");
      const auto& expected = reference.at("tensors").at(name);
      const uint64_t key = fnv1a64(name);
      double projections[kProjections] = {};
      const int64_t count = target.rank * (a ? target.in : target.out);
      for (int64_t i = 0; i < count; ++i) {
        const double g = static_cast<double>(whole[static_cast<size_t>(flat_index(target, a, i))]);
        const uint64_t signs = splitmix64(key ^ (static_cast<uint64_t>(i) + 0x5bd1e995U));
        for (int j = 0; j < kProjections; ++j) projections[j] += ((signs >> j) & 1) != 0 ? g : -g;
      }
      for (int j = 0; j < kProjections; ++j) {
        const auto p = expected.at("projections").at(static_cast<size_t>(j)).get<double>();
        squared_difference += std::pow(projections[j] - p, 2) / kProjections;
      }
      squared_norm += std::pow(expected.at("norm").get<double>(), 2);
      ++factors;
    }
  }
  EXPECT_EQ(factors, reference.at("tensors").size());
  const double distance = std::sqrt(squared_difference / squared_norm);
  std::printf("%s: relative distance to PyTorch %.2e\n", GetParam().reference, distance);
  EXPECT_LT(distance, 2e-3);

  for (const int32_t micro_batch : {8, 64}) {
    options.micro_batch = micro_batch;
    const double apart = relative_distance(gradient_of(*device, model, adapter, options, text), whole);
    std::printf("micro_batch %d: relative distance to the whole %.2e\n", micro_batch, apart);
    EXPECT_LT(apart, 1e-5);
  }

  options.micro_batch = 64;
  const std::vector<float> kept = gradient_of(*device, model, adapter, options, text);
  options.checkpoint_layers = 4;
  EXPECT_EQ(gradient_of(*device, model, adapter, options, text), kept) << "f32 checkpoints change bits";
  options.checkpoint_dtype = tensor::DType::BF16;
  const double rounded = relative_distance(gradient_of(*device, model, adapter, options, text), kept);
  std::printf("bf16 checkpoints: relative distance %.2e\n", rounded);
  EXPECT_LT(rounded, 1e-2);
}

INSTANTIATE_TEST_SUITE_P(RealModels, Gradient,
                         ::testing::Values(Case{"smollm2-135m-q4_1.gguf", "lora_gradient_smollm2.json"},
                                           Case{"gemma3-270m-q4_k_m.gguf", "lora_gradient_gemma3.json"},
                                           Case{"gemma3-270m-q4_k_m.gguf", "lora_gradient_gemma3_600.json"}));

}  // namespace
}  // namespace retro::test
