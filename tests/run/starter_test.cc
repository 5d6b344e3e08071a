#include "run/starter.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "run/document.h"

namespace retro::run {
namespace {

TEST(Starter, ItsDocumentLoadsAsItIs) {
  StarterOptions options;
  options.model = "models/a \"quoted\" name.gguf";
  options.data = "chat.jsonl";
  options.evaluation_data = "held.jsonl";
  options.ctx = 1024;
  options.micro_batch = 128;
  options.gradient_accumulation = 8;
  options.gradient_checkpointing = true;
  options.checkpoint_dtype = "bf16";
  const Document document = parse_document(starter_document("sft", options), "run.toml");
  EXPECT_EQ(document.model.path, "models/a \"quoted\" name.gguf");
  EXPECT_EQ(document.sft.data, "chat.jsonl");
  EXPECT_EQ(document.evaluation->data, "held.jsonl");
  EXPECT_EQ(document.training.ctx, 1024);
  EXPECT_EQ(document.training.micro_batch, 128);
  EXPECT_TRUE(document.training.gradient_checkpointing);
  EXPECT_EQ(document.training.checkpoint_dtype, RetainedType::bf16);
  EXPECT_EQ(document.checkpoint->mode, CheckpointMode::steps);
  EXPECT_NO_THROW(parse_document(starter_document("sft", {}), "run.toml"));
}

TEST(Starter, RunsThatSampleAnswersHaveOneToo) {
  for (const char* algorithm : {"ppo", "grpo"}) {
    StarterOptions options;
    const Document plain = parse_document(starter_document(algorithm, options), "run.toml");
    EXPECT_EQ(plain.rollout().prompts, "prompts.jsonl");
    EXPECT_TRUE(plain.warnings.empty());
    EXPECT_TRUE(plain.observe);
    options.data = "mine.jsonl";
    options.evaluation_data = "held.jsonl";
    options.ctx = 64;
    options.micro_batch = 256;
    options.gradient_checkpointing = true;
    const Document document = parse_document(starter_document(algorithm, options), "run.toml");
    EXPECT_EQ(document.rollout().prompts, "mine.jsonl");
    EXPECT_EQ(document.evaluation->data, "held.jsonl");
    EXPECT_EQ(document.rollout().sampling.max_new_tokens, 32);
    EXPECT_EQ(document.training.micro_batch, 256);
  }
}

TEST(Starter, AnAlgorithmOfALaterBuildIsNamed) {
  EXPECT_THROW(starter_document("distill", {}), Error);
}

}  // namespace
}  // namespace retro::run
