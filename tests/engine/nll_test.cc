// Log-probabilities of real models against PyTorch in f32 on the dequantized weights
// (tools/references/nll.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/real_models.h"

namespace retro::test {
namespace {

struct Case {
  const char* model;
  const char* reference;
};

class Nll : public ::testing::TestWithParam<Case> {};

TEST_P(Nll, MeanEqualsPyTorch) {
  const auto device = device::make_cpu_device(2);
  const model::Model model(cached(GetParam().model));
  std::ifstream file(std::string(RETRO_SOURCE_DIR "/tests/data/") + GetParam().reference);
  const auto reference = nlohmann::json::parse(file);
  size_t texts = 0;
  for (const auto& text : reference.at("texts")) {
    WholeText whole(text.at("ids").get<std::vector<int32_t>>());
    engine::EngineOptions options;
    options.train = false;
    options.kv_dtype = tensor::DType::F32;
    options.micro_batch = 256;
    options.set_rows = whole.rows();
    engine::Engine engine(*device, nullptr, engine::plan_engine(model, nullptr, options));
    const engine::Sequence sequence = whole.sequence();
    engine.score({&sequence, 1});
    const auto mean = text.at("mean").get<double>();
    EXPECT_NEAR(whole.mean_nll(), mean, 5e-4 * mean) << text.at("file");
    RecordProperty(text.at("file").get<std::string>(), std::to_string(std::abs(whole.mean_nll() / mean - 1)));
    std::printf("%s %s: relative difference %.2e\n", GetParam().model,
                text.at("file").get<std::string>().c_str(), std::abs(whole.mean_nll() / mean - 1));
    ++texts;
  }
  EXPECT_EQ(texts, 3U);
}

INSTANTIATE_TEST_SUITE_P(RealModels, Nll,
                         ::testing::Values(Case{"smollm2-135m-q4_1.gguf", "nll_smollm2.json"},
                                           Case{"gemma3-270m-q4_k_m.gguf", "nll_gemma3.json"}));

}  // namespace
}  // namespace retro::test
