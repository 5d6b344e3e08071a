#include "run/document.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "run/keys.h"
#include "tests/run/document_case.h"

namespace retro::run {
namespace {

TEST(Document, AMinimalDocumentHasTheDefaultsOfTheFormat) {
  const Document document = load(kMinimal);
  EXPECT_EQ(document.model.path, "folder/base.gguf");
  EXPECT_EQ(document.output.path, "folder/out/adapter.gguf");
  EXPECT_EQ(document.sft.data, "folder/train.jsonl");
  EXPECT_EQ(document.lora.rank, 8);
  EXPECT_EQ(document.lora.alpha, 16.0);
  EXPECT_EQ(document.lora.seed, 42U);
  EXPECT_EQ(document.lora.targets,
            (std::vector<std::string>{"q", "k", "v", "o", "ffn_up", "ffn_down", "ffn_gate"}));
  EXPECT_EQ(document.lora.dtype, AdapterType::f16);
  EXPECT_EQ(document.training.optimizer, OptimizerKind::adamw);
  EXPECT_EQ(document.training.lr, 1e-4);
  EXPECT_EQ(document.training.max_grad_norm, 1.0);
  EXPECT_EQ(document.training.seed, 42U);
  EXPECT_EQ(document.training.ctx, 128);
  EXPECT_EQ(document.training.micro_batch, 128);
  EXPECT_EQ(document.training.gradient_accumulation, 1);
  EXPECT_EQ(document.training.kv_dtype, CacheType::f16);
  EXPECT_FALSE(document.training.gradient_checkpointing);
  EXPECT_EQ(document.training.chunked_ce_tiles, 8);
  EXPECT_EQ(document.training.chunked_ce_seq_chunk, 512);
  EXPECT_EQ(document.optimizer.beta1, 0.9);
  EXPECT_EQ(document.optimizer.beta2, 0.999);
  EXPECT_EQ(document.optimizer.eps, 1e-8);
  EXPECT_FALSE(document.evaluation.has_value());
  EXPECT_FALSE(document.checkpoint.has_value());
  EXPECT_TRUE(document.sft.packing);
  EXPECT_TRUE(document.sft.shuffle);
  EXPECT_EQ(document.sft.overlong, Overlong::error);
  EXPECT_TRUE(document.warnings.empty());
}

TEST(Document, EveryKeyIsStored) {
  const Document document = load(
      "[run]\nalgorithm = \"sft\"\nverbose = true\n"
      "[model]\npath = \"/models/base.gguf\"\ndevice = \"cpu\"\n"
      "[output]\npath = \"a.gguf\"\nkind = \"adapter\"\n"
      "[lora]\nrank = 4\nalpha = 8\nseed = 7\ntargets = [\"blk.*.attn_q.weight\"]\ndtype = \"f32\"\n"
      "[training]\ntrainable = \"lora\"\noptimizer = \"adamw\"\nlr = 2e-3\nlr_scheduler = \"cosine\"\n"
      "warmup_steps = 3\nweight_decay = 0.1\nmax_grad_norm = 0\nseed = 9\nepochs = 3\nctx = 256\n"
      "micro_batch = 64\ngradient_accumulation = 8\nthreads = 3\nkv_dtype = \"f32\"\n"
      "gradient_checkpointing = true\ncheckpoint_every_n_layers = 2\ncheckpoint_dtype = \"bf16\"\n"
      "chunked_ce_tiles = 4\nchunked_ce_seq_chunk = 0\nrequire_gpu_resident = false\n"
      "[optimizer.adamw]\nbeta1 = 0.8\nbeta2 = 0.95\neps = 1e-6\n"
      "[evaluation]\ndata = \"held.jsonl\"\nevery_iterations = 2\nmax_examples = 10\npatience = 4\n"
      "min_delta = 0.01\n"
      "[checkpoint]\ndirectory = \"ck\"\nmode = \"steps_and_best_eval\"\nevery_steps = 5\nkeep_last = 2\n"
      "resume_from = \"ck/step-000000000005.state\"\n"
      "[metrics]\njsonl = \"m.jsonl\"\n"
      "[sft]\ndata = \"d.txt\"\ndata_format = \"txt\"\nshuffle = false\npacking = false\n"
      "overlong = \"truncate\"\ntemplate_variables = { b = [1, 2.5, true], a = \"x\\\"\" }\n");
  EXPECT_TRUE(document.run.verbose);
  EXPECT_EQ(document.model.path, "/models/base.gguf");
  EXPECT_EQ(document.model.device, DeviceChoice::cpu);
  EXPECT_EQ(document.lora.rank, 4);
  EXPECT_EQ(document.lora.alpha, 8.0);
  EXPECT_EQ(document.lora.seed, 7U);
  EXPECT_EQ(document.lora.targets, std::vector<std::string>{"blk.*.attn_q.weight"});
  EXPECT_EQ(document.lora.dtype, AdapterType::f32);
  EXPECT_EQ(document.training.lr, 2e-3);
  EXPECT_EQ(document.training.lr_scheduler, Schedule::cosine);
  EXPECT_EQ(document.training.warmup_steps, 3);
  EXPECT_EQ(document.training.weight_decay, 0.1);
  EXPECT_EQ(document.training.max_grad_norm, 0.0);
  EXPECT_EQ(document.training.seed, 9U);
  EXPECT_EQ(document.training.epochs, 3);
  EXPECT_EQ(document.training.step_tokens(), 512);
  EXPECT_EQ(document.training.kv_dtype, CacheType::f32);
  EXPECT_EQ(document.training.checkpoint_every_n_layers, 2);
  EXPECT_EQ(document.training.checkpoint_dtype, RetainedType::bf16);
  EXPECT_EQ(document.training.chunked_ce_tiles, 4);
  EXPECT_EQ(document.training.chunked_ce_seq_chunk, 0);
  EXPECT_EQ(document.optimizer.beta1, 0.8);
  EXPECT_EQ(document.optimizer.eps, 1e-6);
  EXPECT_EQ(document.evaluation->data, "folder/held.jsonl");
  EXPECT_EQ(document.evaluation->patience, 4);
  EXPECT_EQ(document.checkpoint->directory, "folder/ck");
  EXPECT_EQ(document.checkpoint->mode, CheckpointMode::steps_and_best_eval);
  EXPECT_EQ(document.checkpoint->every_steps, 5);
  EXPECT_EQ(document.checkpoint->resume_from, "folder/ck/step-000000000005.state");
  EXPECT_EQ(document.metrics.jsonl, "folder/m.jsonl");
  EXPECT_EQ(document.sft.data_format, DataFormat::text);
  EXPECT_EQ(document.sft.overlong, Overlong::truncate);
  EXPECT_EQ(document.sft.template_variables, R"({"a":"x\"","b":[1,2.5,true]})");
  EXPECT_EQ(place(document, "training.lr"), "folder/run.toml:19:1: [training].lr");
}

struct StepCase {
  std::string training;
  int64_t micro_batch;
  int64_t gradient_accumulation;
};

TEST(Document, TheTokensOfAPassAndAStepFollowFromCtx) {
  const std::vector<StepCase> cases = {
      {"", 128, 1},
      {"ctx = 1024", 512, 2},
      {"ctx = 500", 500, 1},
      {"ctx = 1000", 500, 2},
      {"ctx = 520", 260, 2},
      {"ctx = 2048\nmicro_batch = 64", 64, 32},
      {"ctx = 128\ngradient_accumulation = 4", 32, 4},
      {"ctx = 128\ngradient_accumulation = 2", 32, 2},
      {"ctx = 128\ngradient_accumulation = 8", 32, 8},
      {"ctx = 96\nmicro_batch = 96\ngradient_accumulation = 3", 96, 3},
      {"ctx = 96\nmicro_batch = 8\ngradient_accumulation = 4", 8, 4},
      {"ctx = 521\nmicro_batch = 521", 521, 1},
      {"ctx = 30\nmicro_batch = 1", 1, 30},
  };
  for (const StepCase& c : cases) {
    const Document document = load(kMinimal + "[training]\n" + c.training + "\n");
    EXPECT_EQ(document.training.micro_batch, c.micro_batch) << c.training;
    EXPECT_EQ(document.training.gradient_accumulation, c.gradient_accumulation) << c.training;
    const bool said = !document.notes.empty();
    EXPECT_EQ(said, c.training.find("gradient_accumulation") == std::string::npos) << c.training;
  }
}

TEST(Document, TheSeedOfTheDataIsThatOfTheAdapterWhereItIsNotSet) {
  EXPECT_EQ(load(kHead + "[lora]\nseed = 5\n").training.seed, 5U);
  EXPECT_EQ(load(kHead + "[lora]\nseed = 5\n[training]\nseed = 6\n").training.seed, 6U);
}

TEST(Document, TheOlderSpellingOfTheOutputIsRead) {
  const std::string text =
      "[run]\nalgorithm='sft'\n[model]\npath='b.gguf'\n[sft]\ndata='d'\n[lora]\noutput='old.gguf'\n";
  EXPECT_EQ(load(text).output.path, "folder/old.gguf");
  expect_error(text + "[output]\npath='new.gguf'\n", {"run.toml:8:1", "[lora].output", "older spelling"});
}

TEST(Document, TheCommandLineWinsAndItsPathIsTheWorkingFolders) {
  const std::string text = "[run]\nalgorithm='sft'\n[output]\npath='o'\n[sft]\ndata='d'\n[lora]\n";
  expect_error(text, {"[model].path is required", "--model"});
  EXPECT_EQ(load(text, {.model = "other.gguf", .device = "cpu"}).model.path, "other.gguf");
  EXPECT_EQ(load(text, {.model = "other.gguf", .device = "cpu"}).model.device, DeviceChoice::cpu);
  EXPECT_NE(error_of(text, {.model = "m", .device = "gpu"}).find("--device gpu"), std::string::npos);
  EXPECT_NE(error_of(text, {.model = "m", .device = "tpu"}).find("auto, cpu or gpu"), std::string::npos);
}

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Document, ThreadsComeFromTheEnvironmentThenTheDocumentThenTheMachine) {
  unsetenv("RETRO_THREADS");
  EXPECT_EQ(load(kMinimal).training.threads, default_threads());
  EXPECT_EQ(load(kMinimal + "[training]\nthreads = \"auto\"\n").training.threads, default_threads());
  EXPECT_EQ(load(kMinimal + "[training]\nthreads = 7\n").training.threads, 7);
  {
    const Environment environment("RETRO_THREADS", "3");
    EXPECT_EQ(load(kMinimal + "[training]\nthreads = 7\n").training.threads, 3);
  }
  for (const char* bad : {"0", "-1", "two", "3x", "99999999999"}) {
    const Environment environment("RETRO_THREADS", bad);
    expect_error(kMinimal, {"RETRO_THREADS", bad, "from 1 to"});
  }
}

TEST(Document, AGpuKeyWithoutEffectIsAWarning) {
  const Document document = load(kMinimal + "[training]\nmax_gpu_duty_cycle = 0.5\n");
  ASSERT_EQ(document.warnings.size(), 1U);
  EXPECT_NE(document.warnings[0].find("folder/run.toml:11:1: [training].max_gpu_duty_cycle"),
            std::string::npos);
}

TEST(Document, AMarkOfByteOrderAndOtherLineEndsAreRead) {
  std::string text;
  for (const char c : kMinimal) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(load("\xef\xbb\xbf" + text).model.path, "folder/base.gguf");
}

TEST(Keys, ExamplesPassTheirOwnRules) {
  for (const Key& key : keys()) {
    if (!key.refusal.empty() || key.section == "optimizer.adamw") continue;
    const std::string line = std::string(key.name) + " = " + std::string(key.example) + "\n";
    const std::string text = "[run]\nalgorithm = \"sft\"\n[" + std::string(key.section) + "]\n" + line;
    const std::string error = error_of(key.section == "run" ? "[run]\nalgorithm = \"sft\"\n" : text);
    EXPECT_EQ(error.find("must be"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace retro::run
