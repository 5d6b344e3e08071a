// Promises 1 and 2: settings that must not change a bit of what is trained.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/e2e/toy_run.h"
#include "tests/support/cache.h"
#include "tests/support/cpu_targets.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

std::map<std::string, ToySpec> every_model() {
  std::map<std::string, ToySpec> models;
  for (const ToyModel& toy : toy_models()) models.emplace(toy.name, toy.spec);
  ToySpec quantized;
  quantized.dtype = tensor::DType::Q8_0;
  quantized.tied = false;
  models.emplace("llama, Q8_0, untied", quantized);
  return models;
}

ToyDocument with(const std::string& training_keys) {
  ToyDocument toy;
  toy.training += training_keys;
  return toy;
}

TEST(SameBytes, WhateverTheThreads) {
  for (const auto& [name, spec] : every_model()) {
    SCOPED_TRACE(name);
    const ToyRun run(spec);
    const std::string one = run.adapter(with("threads = 1\n"));
    for (const int threads : {2, 3, 7}) {
      EXPECT_EQ(run.adapter(with(fmt::format("threads = {}\n", threads))), one) << threads << " threads";
    }
  }
}

TEST(SameBytes, WhateverTheInstructionSet) {
  const std::vector<int64_t> targets = cpu_targets();
  if (targets.size() < 2) GTEST_SKIP() << "this processor has one instruction set to compare";
  for (const auto& [name, spec] : every_model()) {
    SCOPED_TRACE(name);
    const ToyRun run(spec);
    const std::string best = run.adapter(ToyDocument{});
    for (const int64_t target : targets) {
      const OnTarget on(target);
      EXPECT_EQ(run.adapter(ToyDocument{}), best) << cpu_target_name(target);
    }
  }
}

TEST(SameBytes, WhateverTheMemoryLeversThatDoNotRound) {
  for (const auto& [name, spec] : every_model()) {
    SCOPED_TRACE(name);
    const ToyRun run(spec);
    const std::string plain = run.adapter(ToyDocument{});
    for (const char* lever :
         {"gradient_checkpointing = true\n", "gradient_checkpointing = true\ncheckpoint_every_n_layers = 1\n",
          "chunked_cross_entropy = false\n", "chunked_ce_tiles = 1\n", "chunked_ce_tiles = 16\n"}) {
      EXPECT_EQ(run.adapter(with(lever)), plain) << lever;
    }
  }
}

TEST(SameBytes, OfARealModel) {
  const support::TempFolder folder;
  std::filesystem::create_symlink(cached("smollm2-135m-q4_1.gguf"), folder / "model.gguf");
  std::ofstream(folder / "train.jsonl") << chat_lines(4);
  const auto adapter = [&](const std::string& keys) {
    ToyDocument toy;
    toy.training = "epochs = 1\nlr = 1e-3\nctx = 128\nmicro_batch = 128\n" + keys;
    run::SilentReporter silent;
    const run::Document document = run::parse_document(toy.text(), folder / "run.toml");
    run::train(document, {}, silent);
    return read_file(folder / "adapter.gguf");
  };
  const std::string two = adapter("threads = 2\n");
  EXPECT_EQ(adapter("threads = 1\n"), two);
  EXPECT_EQ(adapter("threads = 3\ngradient_checkpointing = true\n"), two);
  for (const int64_t target : cpu_targets()) {
    const OnTarget on(target);
    EXPECT_EQ(adapter("threads = 2\n"), two) << cpu_target_name(target);
  }
}

}  // namespace
}  // namespace retro::test
