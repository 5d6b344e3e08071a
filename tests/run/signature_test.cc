#include "run/signature.h"

#include <gtest/gtest.h>

namespace retro::run {
namespace {

const std::string kHead =
    "[run]\nalgorithm = \"sft\"\n[model]\npath = \"base.gguf\"\n[output]\npath = \"a.gguf\"\n"
    "[sft]\ndata = \"train.jsonl\"\n[lora]\n";

Document load(const std::string& training) {
  return parse_document(kHead + "[training]\n" + training + "\n", "run.toml");
}

std::string difference(const std::string& before, const std::string& after) {
  return signature_difference(signature(load(before)), signature(load(after)));
}

TEST(Signature, MemoryLeversThreadsAndReportsAreNotPartOfIt) {
  const Document plain = load("ctx = 256");
  const Document levered = load(
      "ctx = 256\nmicro_batch = 32\ngradient_accumulation = 8\nthreads = 5\ngradient_checkpointing = true\n"
      "checkpoint_every_n_layers = 2\nchunked_ce_tiles = 3\nmax_gpu_duty_cycle = 0.5\n"
      "[metrics]\njsonl = \"m.jsonl\"\n[checkpoint]\ndirectory = \"c\"\nmode = \"steps\"\nevery_steps = 3");
  EXPECT_EQ(signature_difference(signature(plain), signature(levered)), "");
  EXPECT_TRUE(signature_remarks(signature(plain), signature(levered)).empty());
  EXPECT_EQ(document_hash(plain), document_hash(levered));
}

TEST(Signature, WhatChangesTheResultIsNamed) {
  EXPECT_EQ(difference("lr = 1e-4", "lr = 1e-3"), "training.lr was 0.0001 and is 0.001");
  EXPECT_NE(difference("", "kv_dtype = \"f32\"").find("training.kv_dtype"), std::string::npos);
  EXPECT_NE(difference("", "seed = 1").find("training.seed"), std::string::npos);
  EXPECT_NE(difference("", "gradient_accumulation = 8").find("gradient_accumulation"), std::string::npos);
  EXPECT_NE(difference("", "[evaluation]\ndata = \"d\"").find("evaluation.every_iterations was not set"),
            std::string::npos);
  EXPECT_NE(document_hash(load("lr = 1e-4")), document_hash(load("lr = 1e-3")));
}

TEST(Signature, EpochsMayGrowWhileTheScheduleIsConstant) {
  EXPECT_EQ(difference("epochs = 1", "epochs = 3"), "");
  EXPECT_EQ(difference("epochs = 3", "epochs = 1"), "training.epochs was 3 and is 1");
  EXPECT_EQ(difference("epochs = 1\nlr_scheduler = \"cosine\"", "epochs = 3\nlr_scheduler = \"cosine\""),
            "training.epochs was 1 and is 3");
}

TEST(Signature, AnAllowedChangeThatAltersBytesIsSaid) {
  const std::string f32 = "gradient_checkpointing = true", bf16 = f32 + "\ncheckpoint_dtype = \"bf16\"";
  EXPECT_EQ(difference(f32, bf16), "");
  const auto remarks = signature_remarks(signature(load(f32)), signature(load(bf16)));
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("training.checkpoint_dtype was f32 and is bf16"), std::string::npos);
}

}  // namespace
}  // namespace retro::run
