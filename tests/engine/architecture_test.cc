// Every architecture against transformers in double precision, on toy models
// (tools/references/toy_architectures.py): log-probabilities of each token, with and without an adapter, and
// the adapter's gradient.
#include "model/architecture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "tests/engine/real_models.h"
#include "tests/engine/reference_gradient.h"
#include "tests/support/sha256.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

class ToyArchitecture : public ::testing::TestWithParam<ToyModel> {
 protected:
  ToyArchitecture() : device_(device::make_cpu_device(1)) {
    const auto path = folder_ / "toy.gguf";
    write_toy_model(path, GetParam().spec);
    file_sha256_ = sha256_hex(read_file(path));
    model_ = std::make_unique<model::Model>(path);
    std::ifstream file(std::string(RETRO_SOURCE_DIR "/tests/data/toy_") + GetParam().name + ".json");
    reference_ = nlohmann::json::parse(file);
  }

  WholeText text() const { return WholeText(reference_.at("ids").get<std::vector<int32_t>>()); }

  engine::EngineOptions options(int32_t micro_batch, bool train) const {
    engine::EngineOptions options;
    options.train = train;
    options.kv_dtype = tensor::DType::F32;
    options.micro_batch = micro_batch;
    options.set_rows = text().rows();
    options.context = text().rows() + 1;
    return options;
  }

  void expect_nll(const WholeText& whole, const char* key) const {
    const auto expected = reference_.at(key).get<std::vector<double>>();
    ASSERT_EQ(whole.logprobs.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double apart = std::abs(-static_cast<double>(whole.logprobs[i]) / expected[i] - 1);
      worst = std::max(worst, apart);
      EXPECT_LT(apart, 1e-4) << key << " of token " << i + 1;
    }
    std::printf("%s: %s apart by at most %.1e\n", GetParam().name.c_str(), key, worst);
  }

  support::TempFolder folder_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<model::Model> model_;
  std::string file_sha256_;
  nlohmann::json reference_;
};

TEST_P(ToyArchitecture, IsTheModelOfTheReference) {
  EXPECT_EQ(file_sha256_, reference_.at("sha256").get<std::string>())
      << "the toy changed: run tools/references/toy_architectures.py " << GetParam().name;
}

TEST_P(ToyArchitecture, LogProbabilitiesEqualTransformers) {
  for (const int32_t micro_batch : {512, 9}) {
    WholeText whole = text();
    engine::Engine engine(*device_, nullptr,
                          engine::plan_engine(*model_, nullptr, options(micro_batch, false)));
    const engine::Sequence sequence = whole.sequence();
    engine.score({&sequence, 1});
    expect_nll(whole, "nll");
  }
}

TEST_P(ToyArchitecture, LoraGradientEqualsTransformers) {
  const model::Adapter adapter = reference_adapter(*model_, reference_);
  for (const int32_t micro_batch : {512, 9}) {
    WholeText whole = text();
    engine::Engine engine(*device_, &adapter,
                          engine::plan_engine(*model_, &adapter.layout, options(micro_batch, true)));
    engine.clear_gradient();
    const engine::Sequence sequence = whole.sequence();
    engine.accumulate({&sequence, 1});
    expect_nll(whole, "adapted_nll");
    const double distance = distance_to_reference(engine.gradient(), adapter.layout, reference_);
    std::printf("%s: gradient apart by %.1e\n", GetParam().name.c_str(), distance);
    EXPECT_LT(distance, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Toys, ToyArchitecture, ::testing::ValuesIn(toy_models()),
                         [](const auto& test) { return test.param.name; });

TEST(ToyArchitectures, AreAllThatThisBuildKnows) {
  std::set<std::string> toys;
  for (const ToyModel& toy : toy_models()) toys.insert(toy.spec.architecture);
  std::set<std::string> known;
  for (const model::Architecture* architecture : model::architectures())
    known.insert(std::string(architecture->name));
  EXPECT_EQ(toys, known);
}

}  // namespace
}  // namespace retro::test
