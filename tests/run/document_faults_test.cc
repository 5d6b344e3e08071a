// What is wrong in a run document is said with its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/document.h"
#include "run/nearest.h"
#include "tests/run/document_case.h"

namespace retro::run {
namespace {

struct BadCase {
  std::string text;                    ///< behind kMinimal, whose last section is [lora] at line 9
  std::vector<std::string> fragments;  ///< of the error
};

TEST(Document, ABadValueIsRefusedWithPlaceKeyValueRuleAndAnExample) {
  const std::vector<BadCase> cases = {
      {"rank = 0",
       {"folder/run.toml:10:1: [lora].rank = 0: must be a whole number from 1 to 65536, as rank = 8"}},
      {"rank = 8.0", {"[lora].rank = 8.0: must be a whole number"}},
      {"rank = \"8\"", {"[lora].rank = \"8\": must be a whole number"}},
      {"alpha = 0", {"[lora].alpha = 0: must be a number above 0 and at most 1e+30, as alpha = 16.0"}},
      {"alpha = nan", {"[lora].alpha = nan: must be a number above 0 and at most 1e+30"}},
      {"alpha = inf", {"[lora].alpha = inf"}},
      {"seed = -1", {"[lora].seed = -1: must be a whole number of at least 0"}},
      {"dtype = \"bf16\"", {"must be one of \"f16\" and \"f32\", as dtype = \"f16\""}},
      {"targets = []", {"[lora].targets = []", "at least one"}},
      {"targets = \"q\"", {"[lora].targets = \"q\": must be a list"}},
      {"targets = [\"q\", 1]", {"must be a list of names"}},
      {"targets = [\"q\", \"q\"]", {"must be a list of names", "none twice"}},
      {"targets = [\"q\", \"auto\"]", {"\"auto\"", "stands alone"}},
      {"init_adapter = \"a.gguf\"\nrank = 4", {":11:1: [lora].rank", "init_adapter"}},
      {"init_adapter = \"a.gguf\"\nalpha = 4", {"[lora].alpha"}},
      {"init_adapter = \"a.gguf\"\ntargets = [\"q\"]", {"[lora].targets"}},
      {"init_adapter = \"a.gguf\"\ndtype = \"f32\"", {"[lora].dtype"}},
      {"init_adapter = \"\"", {"[lora].init_adapter = \"\": must be a path"}},
      {"init_adapter = \"a\\u0000b\"", {"[lora].init_adapter", "control characters"}},
      {"[training]\nlr = 0",
       {":11:1: [training].lr = 0: must be a number above 0 and at most 1e+30, as lr = 1e-4"}},
      {"[training]\nlr = \"fast\"", {"[training].lr = \"fast\""}},
      {"[training]\nweight_decay = 1.5", {"must be a number of at least 0 and at most 1"}},
      {"[training]\nmax_grad_norm = -1", {"must be a finite number of at least 0"}},
      {"[training]\nlr_scheduler = \"cosin\"",
       {"one of \"constant\", \"linear\" and \"cosine\"", "= \"cosine\""}},
      {"[training]\nepochs = 0", {"[training].epochs = 0"}},
      {"[training]\nwarmup_steps = -1", {"[training].warmup_steps = -1"}},
      {"[training]\nctx = 1", {"[training].ctx = 1: must be a whole number from 2 to"}},
      {"[training]\nctx = 9223372036854775807", {"[training].ctx"}},
      {"[training]\nctx = 9223372036854775808", {"not valid TOML"}},
      {"[training]\nctx = 521", {":11:1: [training].ctx = 521", "ctx = 520"}},
      {"[training]\nctx = 1021", {"[training].ctx = 1021", "ctx = 1020"}},
      {"[training]\nctx = 32", {"[training].ctx = 32", "ctx = 64"}},
      {"[training]\nmicro_batch = 0", {"[training].micro_batch = 0"}},
      {"[training]\nmicro_batch = 48", {"must divide ctx = 128", "micro_batch = 32"}},
      {"[training]\nmicro_batch = 256", {"at most ctx = 128", "micro_batch = 128"}},
      {"[training]\nmicro_batch = 32\ngradient_accumulation = 3",
       {":12:1: [training].gradient_accumulation = 3", "32 x 3 = 96", "multiple",
        "gradient_accumulation = 2"}},
      {"[training]\ngradient_accumulation = 3", {"32 x 3 = 96", "ctx = 128"}},
      {"[training]\nctx = 16\ngradient_accumulation = 1", {"micro_batch = 32", "at most ctx = 16"}},
      {"[training]\nthreads = 0",
       {"[training].threads = 0: must be a whole number from 1 to 1024 or \"auto\""}},
      {"[training]\ngeneration_concurrency = 4", {":11:1: [training].generation_concurrency = 4", "sft"}},
      {"[training]\nfast_sampling_context = true", {"[training].fast_sampling_context", "sft"}},
      {"[training]\nbehavior_logprobs = \"sampled\"", {"[training].behavior_logprobs"}},
      {"[training]\nshared_prefix_fanout = 4", {"[training].shared_prefix_fanout"}},
      {"[training]\ngeneration_batch = 4", {"[training].generation_batch"}},
      {"[training]\nmaster_weights = \"f32\"", {"[training].master_weights", "base weights"}},
      {"[training]\ncheckpoint_dtype = \"f32\"",
       {"[training].checkpoint_dtype", "gradient_checkpointing = true"}},
      {"[training]\ncheckpoint_every_n_layers = 2", {"gradient_checkpointing = true"}},
      {"[training]\nchunked_cross_entropy = false\nchunked_ce_tiles = 2", {"chunked_cross_entropy = true"}},
      {"[training]\nrequire_gpu_resident = true", {"[training].require_gpu_resident", "CPU"}},
      {"[training]\nmax_gpu_duty_cycle = 0", {"above 0 and at most 1"}},
      {"[training]\ntrainable = \"full\"",
       {"[training].trainable = \"full\"", "does not have it yet", "\"lora\""}},
      {"[training]\ntrainable = \"all\"", {"must be \"lora\""}},
      {"[training]\noptimizer = \"muon\"", {"does not have it yet; it has \"adamw\" and \"sgd\""}},
      {"[training]\noptimizer = \"sgd\"\n[optimizer.adamw]\nbeta1 = 0.8",
       {":12:12: [optimizer.adamw]", "not chosen"}},
      {"[optimizer.muon]\nmomentum = 0.9", {":10:12: [optimizer.muon]"}},
      {"[optimizer.adam]", {"[optimizer.adamw]"}},
      {"[optimizer]\nbeta1 = 0.9", {"optimizer.beta1"}},
      {"optimizer = 1", {"[lora] has no key \"optimizer\"", "[training]"}},
      {"[optimizer.adamw]\nbeta1 = 1", {"of at least 0 and at most 0.9999999"}},
      {"[optimizer.adamw]\neps = 0", {"[optimizer.adamw].eps = 0"}},
      {"[evaluation]", {":10:2: [evaluation].data is required"}},
      {"[evaluation]\ndata = 5", {"[evaluation].data = 5"}},
      {"[evaluation]\ndata = \"d\"\nmax_examples = 0", {"[evaluation].max_examples = 0"}},
      {"[checkpoint]", {"[checkpoint].directory is required", "[checkpoint].mode is required"}},
      {"[checkpoint]\ndirectory = \"c\"\nmode = \"steps\"", {"[checkpoint].every_steps is required"}},
      {"[checkpoint]\ndirectory = \"c\"\nmode = \"best_eval\"", {"no [evaluation] section"}},
      {"[evaluation]\ndata = \"d\"\n[checkpoint]\ndirectory = \"c\"\nmode = \"best_eval\"\nevery_steps = 3",
       {"[checkpoint].every_steps", "writes none"}},
      {"[evaluation]\ndata = \"d\"\n[checkpoint]\ndirectory = \"c\"\nmode = \"best_eval\"\nkeep_last = 3",
       {"[checkpoint].keep_last"}},
      {"[metrics]\ntensorboard_dir = \"t\"", {"[metrics].tensorboard_dir", "does not have it yet"}},
      {"[metrics]\nwandb_export_dir = \"t\"", {"[metrics].wandb_export_dir"}},
      {"[observe]\ndirectory = \"o\"", {"[observe] goes with ppo, grpo and agent_grpo"}},
      {"[reference]\nmodel = \"o\"", {"[reference]"}},
      {"[trainable]\nlayers = \"all\"", {"[trainable]"}},
      {"[grpo]\nupdates = 1", {"[grpo] goes with another algorithm"}},
      {"[metrics]\njsonl = \"out/../out/adapter.gguf\"", {"metrics.jsonl", "output.path", "overwrite"}},
      {"[metrics]\njsonl = \"train.jsonl\"", {"sft.data", "overwrite"}},
      {"[metrics]\njsonl = \"run.toml\"", {"run document itself"}},
      {"[training]\nlr = 1\nlr = 2", {"folder/run.toml:12:", "not valid TOML", "'lr'"}},
      {"[+training]\nlr = 1", {"folder/run.toml:10:2: not valid TOML"}},
      {"a\xd2\x99 = 1", {"folder/run.toml:10:2: not valid TOML"}},
      {"dtype = \"f16\" \xc3\xa9", {"folder/run.toml:10:15: not valid TOML"}},
      {"[training\nlr = 1", {"folder/run.toml:10:", "not valid TOML"}},
      {"[[metrics]]\njsonl = \"a\"", {"'metrics' is a list; it is a section, as [metrics]"}},
      {"seed = \xff", {"folder/run.toml:10:", "not valid TOML"}},
  };
  for (const BadCase& c : cases) expect_error(kMinimal + c.text + "\n", c.fragments);
}

TEST(Document, TemplateVariablesKeepTheNamesOfTheProgramFree) {
  const std::string text =
      "[run]\nalgorithm='sft'\n[model]\npath='b'\n[output]\npath='o'\n[lora]\n[sft]\ndata='d'\n";
  for (const char* name : {"messages", "tools", "bos_token", "eos_token", "add_generation_prompt"}) {
    expect_error(text + "template_variables = { " + name + " = 1 }\n", {"[sft].template_variables", name});
  }
  expect_error(text + "template_variables = { x = nan }\n", {"finite"});
  expect_error(text + "template_variables = { x = [{ y = 2024-01-01 }] }\n", {"date"});
  expect_error(text + "template_variables = 3\n", {"must be a table"});
}

TEST(Document, AnUnknownNameBringsTheNearestKnownOne) {
  const std::vector<BadCase> cases = {
      {"rnak = 4", {":10:1: [lora] has no key \"rnak\"; did you mean 'rank'?"}},
      {"[training]\nlearning_rate = 4", {"did you mean 'lr'?"}},
      {"[training]\nmicrobatch = 4", {"did you mean 'micro_batch'?"}},
      {"[training]\nrank = 4", {"it is a key of [lora]"}},
      {"[trainig]\nlr = 4", {":10:2: there is no section 'trainig'; did you mean [training]?"}},
  };
  for (const BadCase& c : cases) expect_error(kMinimal + c.text + "\n", c.fragments);
  expect_error("verbos = true\n" + kMinimal, {"run.toml:1:1: there is no key outside the sections"});
}

TEST(Document, WhatIsMissingIsNamed) {
  expect_error("", {"folder/run.toml: [run].algorithm is required"});
  expect_error("[run]\nalgorithm = \"sft\"\n", {"[model].path is required", "[output].path is required",
                                                "[sft].data is required", "needs a [lora] section"});
}

TEST(Document, AnotherAlgorithmIsOneErrorWithoutNoise) {
  for (const char* name : {"preference", "distill", "agent_grpo"}) {
    const std::string error = error_of(std::string("[run]\nalgorithm = \"") + name +
                                       "\"\n[grpo]\nx = 1\n[observe]\ndirectory = \"d\"\n");
    EXPECT_EQ(error, std::string("folder/run.toml:2:1: [run].algorithm = \"") + name +
                         "\": this build does not have it yet; it has \"sft\", \"ppo\" and \"grpo\", as "
                         "algorithm = \"sft\"");
  }
  EXPECT_NE(error_of("[run]\nalgorithm = \"stf\"\n").find("must be one of \"sft\""), std::string::npos);
}

TEST(Document, AllFaultsAreToldInTheOrderOfTheirPlaces) {
  const std::string error = error_of(kMinimal + "rank = 0\nalpha = 0\n[training]\nlr = -1\nfoo = 1\n");
  const size_t rank = error.find(":10:1: [lora].rank"),
               alpha = error.find("\nfolder/run.toml:11:1: [lora].alpha"),
               lr = error.find("\nfolder/run.toml:13:1: [training].lr"),
               foo = error.find(":14:1: [training]");
  EXPECT_TRUE(rank < alpha && alpha < lr && lr < foo && foo != std::string::npos) << error;
}

TEST(Document, NoMoreThanTwentyFaultsAreListed) {
  std::string text = kMinimal;
  for (int i = 0; i < 30; ++i) text += "unknown" + std::to_string(i) + " = 1\n";
  const std::string error = error_of(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 20);
  EXPECT_NE(error.find("and 10 more"), std::string::npos);
}

TEST(Document, HostileTextIsAnErrorAtOnce) {
  EXPECT_NE(error_of(std::string((1 << 20) + 1, ' ')).find("a run document has at most"), std::string::npos);
  std::string dots = "a";
  for (int i = 0; i < 400000; ++i) dots += ".a";
  EXPECT_NE(error_of(kMinimal + dots + " = 1\n").find("folder/run.toml:10: a key of more than"),
            std::string::npos);
  EXPECT_NE(error_of(kMinimal + "[" + dots + "]\n").find("folder/run.toml:10: a key of more than"),
            std::string::npos);
  EXPECT_NE(error_of(kMinimal + "x = \"it's \\\" \"\n" + dots + "=1\n").find(":11: a key of more"),
            std::string::npos);
  EXPECT_FALSE(error_of("x = " + std::string(500000, '[')).empty());
  std::string tables = "x = ";
  for (int i = 0; i < 100000; ++i) tables += "{a=";
  EXPECT_FALSE(error_of(tables).empty());
}

TEST(Document, ALongValueIsCutInTheMessage) {
  const std::string error = error_of(kMinimal + "dtype = \"" + std::string(5000, 'x') + "\"\n");
  EXPECT_LT(error.size(), 300U);
}

TEST(Document, AFileThatIsNotThereIsAMistakeInTheConfiguration) {
  try {
    load_document("/nowhere/run.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(std::string(error.what()).find("/nowhere/run.toml"), std::string::npos);
  }
}

TEST(Nearest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ca", "ac"), 1U);
  EXPECT_EQ(edit_distance("rank", "rank"), 0U);
}

}  // namespace
}  // namespace retro::run
