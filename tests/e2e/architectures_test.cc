// Every architecture through the whole program: trained, interrupted by a full disk and resumed.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "model/adapter.h"
#include "model/model.h"
#include "run/checkpoint.h"
#include "tests/e2e/toy_run.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

class EveryArchitecture : public ::testing::TestWithParam<ToyModel> {};

TEST_P(EveryArchitecture, LearnsAndItsAdapterIsReadAgain) {
  const ToyRun run(GetParam().spec);
  ToyDocument toy;
  toy.rest = "[evaluation]\ndata = \"train.jsonl\"\nevery_iterations = 1\n";
  Heard heard;
  const run::TrainResult result = run.train(toy, heard);
  EXPECT_GT(result.steps, 1);
  const model::Model model(run / "model.gguf");
  const auto loaded = model::read_adapter(run / "adapter.gguf", model);
  // With the default targets: every matrix of the blocks.
  EXPECT_EQ(loaded.adapter.layout.targets.size(), model.block_matrices().size());
  for (const auto& target : loaded.adapter.layout.targets) {
    // B starts as zeros.
    EXPECT_NE(loaded.adapter.weights[static_cast<size_t>(target.bt_offset)], 0) << target.name;
  }
}

TEST_P(EveryArchitecture, ResumesToTheSameBytes) {
  ToyDocument toy;
  toy.rest = kCheckpointEveryStep;
  const ToyRun whole(GetParam().spec);
  size_t in_all = 0;
  g_write_fault = [&](size_t bytes) { in_all += bytes; };
  const std::string expected = whole.adapter(toy);
  const ToyRun cut(GetParam().spec);
  // The disk is full in the middle of the run.
  size_t written = 0;
  g_write_fault = [&](size_t bytes) {
    written += bytes;
    if (written > in_all / 2) fail(ErrorKind::io, "no space left on device");
  };
  EXPECT_THROW(cut.train(toy), Error);
  g_write_fault = {};
  ASSERT_TRUE(run::newest_checkpoint(cut / "state").has_value());
  run::TrainOptions options;
  options.resume = true;
  cut.train(toy, options);
  EXPECT_EQ(cut.get("adapter.gguf"), expected);
}

INSTANTIATE_TEST_SUITE_P(Toys, EveryArchitecture, ::testing::ValuesIn(toy_models()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace retro::test
