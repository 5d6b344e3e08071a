// A step after the first allocates nothing: neither memory nor graphs, passes or queries.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "algo/sft.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/optimizer.h"
#include "tests/support/allocations.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_gguf.h"

namespace retro::test {
namespace {

struct Case {
  const char* name;
  int32_t micro_batch;
  int32_t checkpoint_layers;
};

class StepAllocation : public testing::TestWithParam<Case> {
 protected:
  StepAllocation() {
    ToySpec spec;
    spec.layers = 4;
    write_toy_model(folder.path() / "toy.gguf", spec);
    const RandomStream stream(1, "tokens");
    for (size_t i = 0; i < records.size(); ++i) {
      for (uint64_t t = 0; t < 20 + 11 * i; ++t)
        records[i].ids.push_back(3 + static_cast<int32_t>(stream.below(100 * i + t, 90)));
      records[i].trained.assign(records[i].ids.size(), 1);
      step.spans.push_back({i, 0, static_cast<int32_t>(records[i].ids.size())});
    }
  }

  support::TempFolder folder;
  std::vector<data::TrainingRecord> records = std::vector<data::TrainingRecord>(4);
  algo::SftStep step;
};

TEST_P(StepAllocation, IsNoneAfterTheFirst) {
  const model::Model model(folder.path() / "toy.gguf");
  const std::vector<std::string> all = {"auto"};
  model::Adapter adapter =
      model::make_adapter(model::choose_targets(model, all, 4, 8.0F, tensor::DType::F16), 1);
  const auto device = device::make_cpu_device(2);
  engine::EngineOptions options;
  options.micro_batch = GetParam().micro_batch;
  options.set_rows = 64;
  options.checkpoint_layers = GetParam().checkpoint_layers;
  engine::Engine engine(*device, &adapter, engine::plan_engine(model, &adapter.layout, options));
  engine::Optimizer optimizer(*device, {}, engine::parameters_of(adapter.layout));
  algo::SftBatch batch;
  const auto run_step = [&] {
    engine.clear_gradient();
    engine.accumulate(batch.build(step, records));
    optimizer.step(adapter.weights, engine.gradient(), 1e-4);
    engine.refresh_adapter();
  };
  run_step();
  const int64_t before = allocations_so_far();
  run_step();
  run_step();
  EXPECT_EQ(allocations_so_far(), before);
}

INSTANTIATE_TEST_SUITE_P(Levers, StepAllocation,
                         testing::Values(Case{"WholeRecords", 64, 0}, Case{"SeveralPasses", 16, 0},
                                         Case{"Checkpoints", 16, 2}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace retro::test
