// The LoRA gradient of real models against PyTorch in f32 (tools/references/lora_gradient.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/real_models.h"
#include "tests/engine/reference_gradient.h"

namespace retro::test {
namespace {

struct Case {
  const char* model;
  const char* reference;
};

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
  const model::Adapter adapter = reference_adapter(model, reference);
  WholeText text(reference.at("ids").get<std::vector<int32_t>>());

  engine::EngineOptions options;
  options.kv_dtype = tensor::DType::F32;
  options.micro_batch = text.rows();
  const std::vector<float> whole = gradient_of(*device, model, adapter, options, text);
  EXPECT_NEAR(text.mean_nll(), reference.at("loss").get<double>(), 5e-4 * text.mean_nll());

  const double distance = distance_to_reference(whole, adapter.layout, reference);
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
