// Documents of runs that sample answers: what they take, derive and refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/document.h"
#include "run/signature.h"
#include "tests/run/document_case.h"

namespace retro::run {
namespace {

std::string head(const std::string& algorithm) {
  return "[run]\nalgorithm = \"" + algorithm +
         "\"\n[model]\npath = \"base.gguf\"\n[output]\npath = \"out.gguf\"\n[lora]\n[training]\nctx = 256\n";
}

const std::string kSampling = "temperature = 1.0\ntop_p = 1.0\nmax_new_tokens = 64\nseed = 7\n";
const std::string kGrpoKeys =
    "prompts = \"p.jsonl\"\nreward_command = [\"python3\", \"r.py\", \"\", \"\"]\nupdates = 10\n"
    "prompts_per_update = 4\ngroup_size = 8\ngrpo_epochs = 2\nclip_range_low = 0.2\nclip_range_high = 0.28\n"
    "kl_coefficient = 0.02\n";
const std::string kPpoKeys =
    "prompts = \"p.jsonl\"\nreward_command = [\"./reward\"]\nupdates = 10\nrollout_batch_size = 24\n"
    "ppo_epochs = 3\nclip_range = 0.2\nkl_coefficient = 0.1\n";

/// `training` behind [training], `own` behind [grpo], `more` at the end.
std::string grpo(const std::string& training = "", const std::string& own = "",
                 const std::string& more = "") {
  return head("grpo") + training + "[grpo]\n" + kGrpoKeys + own + "[grpo.sampling]\n" + kSampling + more;
}
std::string ppo(const std::string& training = "", const std::string& own = "", const std::string& more = "",
                const std::string& sampling = kSampling) {
  return head("ppo") + training + "[ppo]\n" + kPpoKeys + own + "[ppo.sampling]\n" + sampling + more;
}

std::string without(std::string text, const std::string& line) {
  const size_t at = text.find("\n" + line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.erase(at, text.find('\n', at + 1) - at);
}

TEST(RolloutDocument, GrpoHasItsDefaults) {
  const Document document = load(grpo());
  const GrpoSection& section = document.grpo;
  EXPECT_EQ(document.run.algorithm, Algorithm::grpo);
  EXPECT_EQ(section.prompts, "folder/p.jsonl");
  EXPECT_EQ(section.reward_command, (std::vector<std::string>{"python3", "r.py", "", ""}));
  EXPECT_EQ(section.reward_mode, RewardMode::persistent);
  EXPECT_EQ(section.reward_timeout_seconds, 300);
  EXPECT_FALSE(section.mask_truncated);
  EXPECT_EQ(section.baseline, Baseline::mean);
  EXPECT_EQ(section.prompt_order, PromptSequence::sequential);
  EXPECT_EQ(section.max_stalled_updates, 25);
  EXPECT_EQ(section.importance_sampling_level, RatioLevel::token);
  EXPECT_FALSE(section.overlong_penalty || section.kl_schedule || section.dynamic_sampling);
  EXPECT_EQ(section.sampling.max_new_tokens, 64);
  EXPECT_EQ(section.sampling.seed, 7U);
  EXPECT_FALSE(document.observe || document.reference);
  const TrainingSection& training = document.training;
  EXPECT_TRUE(training.fast_sampling_context);
  EXPECT_EQ(training.behavior_logprobs, BehaviorLogprobs::rescored);
  EXPECT_EQ(training.shared_prefix_fanout, TrainingSection::kFanoutAuto);
  EXPECT_FALSE(training.generation_batch);
  EXPECT_EQ(training.micro_batch, 256);
  EXPECT_EQ(training.gradient_accumulation, 1);
  EXPECT_EQ(training.generation_concurrency, 32);
  EXPECT_EQ(document.answers_per_update(), 32);
  EXPECT_EQ(document.nominal_steps(), 10 * 4 * 2);
  EXPECT_TRUE(document.warnings.empty());
}

TEST(RolloutDocument, PpoHasItsDefaults) {
  const Document document = load(ppo());
  const CriticSection& critic = document.ppo.critic;
  EXPECT_TRUE(critic.enabled);
  EXPECT_EQ(critic.gamma, 1.0);
  EXPECT_EQ(critic.gae_lambda, 0.95);
  EXPECT_EQ(critic.value_lr, 0.01);
  EXPECT_EQ(critic.value_epochs, 8);
  EXPECT_EQ(critic.feature_dtype, RetainedType::f32);
  EXPECT_EQ(document.nominal_steps(), 10 * 24 * 3);
  EXPECT_EQ(document.training.generation_concurrency, 24);
  EXPECT_EQ(&document.rollout(), static_cast<const RolloutSection*>(&document.ppo));
}

TEST(RolloutDocument, EveryKeyIsRead) {
  const Document document = load(grpo(
      "generation_concurrency = 3\ngeneration_batch = 128\nshared_prefix_fanout = 4\n"
      "fast_sampling_context = false\nbehavior_logprobs = \"sampled\"\n",
      "reward_mode = \"oneshot\"\nreward_timeout_seconds = 1.5\nmask_truncated = true\nbaseline = \"rloo\"\n"
      "prompt_order = \"shuffled\"\nmax_stalled_updates = 0\nimportance_sampling_level = \"sequence\"\n",
      "[grpo.overlong_penalty]\nbuffer_tokens = 64\nmax_penalty = 0.5\n"
      "[grpo.kl_schedule]\nwarmup_updates = 5\ntarget = 0.03\n"
      "[grpo.dynamic_sampling]\nmax_resample_factor = 3\n"
      "[reference]\nmodel = \"ref.gguf\"\n"
      "[observe]\ndirectory = \"seen\"\nenabled = false\nevery = 2\nmax_text_chars = 100\n"));
  EXPECT_EQ(document.training.generation_concurrency, 3);
  EXPECT_EQ(document.training.generation_batch, 128);
  EXPECT_EQ(document.training.shared_prefix_fanout, 4);
  EXPECT_FALSE(document.training.fast_sampling_context);
  EXPECT_EQ(document.training.behavior_logprobs, BehaviorLogprobs::sampled);
  EXPECT_EQ(document.grpo.reward_mode, RewardMode::oneshot);
  EXPECT_EQ(document.grpo.reward_timeout_seconds, 1.5);
  EXPECT_TRUE(document.grpo.mask_truncated);
  EXPECT_EQ(document.grpo.baseline, Baseline::leave_one_out);
  EXPECT_EQ(document.grpo.prompt_order, PromptSequence::shuffled);
  EXPECT_EQ(document.grpo.max_stalled_updates, 0);
  EXPECT_EQ(document.grpo.importance_sampling_level, RatioLevel::sequence);
  EXPECT_EQ(document.grpo.overlong_penalty->buffer_tokens, 64);
  EXPECT_EQ(document.grpo.overlong_penalty->max_penalty, 0.5);
  EXPECT_EQ(document.grpo.kl_schedule->warmup_updates, 5);
  EXPECT_EQ(document.grpo.kl_schedule->target, 0.03);
  EXPECT_EQ(document.grpo.dynamic_sampling->max_resample_factor, 3);
  EXPECT_EQ(document.reference->model, "folder/ref.gguf");
  EXPECT_EQ(document.reference->ctx, 256);
  EXPECT_EQ(document.observe->directory, "folder/seen");
  EXPECT_FALSE(document.observe->enabled);
  EXPECT_EQ(document.observe->every, 2);
  EXPECT_EQ(document.observe->max_text_chars, 100);
  for (const auto& [word, value] :
       {std::pair{"auto", TrainingSection::kFanoutAuto}, std::pair{"off", TrainingSection::kFanoutOff},
        std::pair{"max", TrainingSection::kFanoutMax}}) {
    EXPECT_EQ(
        load(grpo("shared_prefix_fanout = \"" + std::string(word) + "\"\n")).training.shared_prefix_fanout,
        value);
  }
}

TEST(RolloutDocument, WhatIsRequiredIsNamedWithAnExample) {
  const std::string bare =
      "[run]\nalgorithm = \"grpo\"\n[model]\npath = \"m\"\n[output]\npath = \"o\"\n[lora]\n";
  expect_error(
      bare, {"[grpo].prompts is required, as prompts = \"prompts.jsonl\"",
             "[grpo].reward_command is required, as reward_command = [\"python3\", \"reward.py\"]",
             "[grpo].updates is required", "[grpo].prompts_per_update", "[grpo].group_size",
             "[grpo].grpo_epochs", "[grpo].clip_range_low", "[grpo].clip_range_high", "[grpo].kl_coefficient",
             "[grpo.sampling].temperature is required, as temperature = 1.0", "[grpo.sampling].top_p",
             "[grpo.sampling].max_new_tokens", "[grpo.sampling].seed"});
  for (const char* key : {"rollout_batch_size", "ppo_epochs", "clip_range", "kl_coefficient", "updates"}) {
    expect_error(without(ppo(), key), {std::string("[ppo].") + key + " is required"});
  }
  expect_error(without(grpo(), "seed = 7"),
               {"run.toml:20:7: [grpo.sampling].seed is required, as seed = 42"});
  expect_error(grpo("", "", "[grpo.overlong_penalty]\n"),
               {"[grpo.overlong_penalty].buffer_tokens is required",
                "[grpo.overlong_penalty].max_penalty is required"});
  expect_error(grpo("", "", "[grpo.dynamic_sampling]\n"), {"max_resample_factor is required"});
  expect_error(grpo("", "", "[observe]\n"), {"[observe].directory is required"});
  expect_error(grpo("", "", "[reference]\n"), {"[reference].model is required"});
}

struct BadCase {
  std::string text;
  std::vector<std::string> fragments;
};

TEST(RolloutDocument, ABadValueIsRefusedWithItsRule) {
  const std::vector<BadCase> cases = {
      {grpo("generation_concurrency = 0\n"),
       {"[training].generation_concurrency = 0: must be a whole number from 1"}},
      {grpo("shared_prefix_fanout = 1\n"), {"from 2 to 256 or one of \"auto\", \"off\" and \"max\""}},
      {grpo("shared_prefix_fanout = \"on\"\n"), {"[training].shared_prefix_fanout = \"on\""}},
      {grpo("behavior_logprobs = \"sample\"\n"),
       {"one of \"rescored\" and \"sampled\", as behavior_logprobs = \"sampled\""}},
      {grpo("micro_batch = 48\n"), {"must divide ctx = 256 or be larger, as micro_batch = 32"}},
      {grpo("micro_batch = 128\ngradient_accumulation = 4\n"),
       {"[training].gradient_accumulation = 4", "ctx / micro_batch = 256 / 128",
        "gradient_accumulation = 2"}},
      {grpo("gradient_accumulation = 2\n"), {"256 / 32", "gradient_accumulation = 8"}},
      {grpo("warmup_steps = 80\n"), {"[training].warmup_steps = 80", "80 steps", "at most 79"}},
      {grpo("", "judge_weight = 1.0\n"), {"[grpo].judge_weight", "no judges yet"}},
      {grpo("", "judge_failure = \"fail\"\n"), {"[grpo].judge_failure", "no judges yet"}},
      {grpo("", "max_judge_dropped_fraction = 0.5\n"), {"[grpo].max_judge_dropped_fraction"}},
      {grpo("", "", "[grpo.judge]\ntype = \"ruler\"\n"),
       {"[grpo.judge] is a judge, and this build has none yet"}},
      {grpo("", "", "[grpo.log_completions]\ndirectory = \"d\"\n"), {"[grpo.log_completions]", "[observe]"}},
      {grpo("", "max_stalled_updates = -1\n"), {"[grpo].max_stalled_updates = -1"}},
      {grpo("", "rewards = 1\n"), {"[grpo] has no key \"rewards\""}},
      {grpo("", "", "[grpo.overlong_penalty]\nbuffer_tokens = 65\nmax_penalty = 1\n"),
       {"buffer_tokens = 65", "max_new_tokens = 64"}},
      {grpo("", "", "[grpo.dynamic_sampling]\nmax_resample_factor = 1\n"), {"from 2 to 1000"}},
      {grpo("", "", "[grpo.kl_schedule]\ntarget = 0\n"),
       {"[grpo.kl_schedule].target = 0: must be a number above 0"}},
      {grpo("", "", "[reference]\nmodel = \"m\"\nctx = 128\n"),
       {"[reference].ctx = 128", "at least training.ctx = 256"}},
      {grpo("", "", "[observe]\ndirectory = \"o\"\nevery = 0\n"), {"[observe].every = 0"}},
      {grpo("", "", "[observe]\ndirectory = \"out.gguf\"\n"),
       {"observe.directory", "output.path", "overwrite"}},
      {grpo("", "", "[sft]\ndata = \"d\"\n"),
       {"[sft] goes with another algorithm; this is a grpo run, whose section is [grpo]. Remove it"}},
      {grpo("", "", "[ppo]\nupdates = 1\n"), {"[ppo] goes with another algorithm"}},
      {grpo("", "", "[distill]\nmode = \"on_policy\"\n"),
       {"[distill] goes with an algorithm that this build does not have"}},
      {ppo("", "", "[reference]\nmodel = \"m\"\n"), {"[reference] is for the KL term of grpo"}},
      {ppo("", "", "[ppo.critic]\nenabled = false\nfeature_dtype = \"f16\"\n"),
       {"[ppo.critic].feature_dtype is read only with enabled = true"}},
      {ppo("", "", "[ppo.critic]\nenabled = false\ngamma = 0.9\n"), {"[ppo.critic].gamma"}},
      {ppo("", "", "[ppo.critic]\ngamma = 1.1\n"), {"[ppo.critic].gamma = 1.1"}},
      {ppo("", "", "[ppo.critic]\nvalue_epochs = 0\n"), {"[ppo.critic].value_epochs = 0"}},
      {ppo("", "", "", "temperature = 0\ntop_p = 0\nmax_new_tokens = 0\nseed = -1\n"),
       {"[ppo.sampling].temperature = 0: must be a number above 0", "[ppo.sampling].top_p = 0",
        "[ppo.sampling].max_new_tokens = 0", "[ppo.sampling].seed = -1"}},
      {ppo("", "", "", "temperature = 1\ntop_p = 1\nmax_new_tokens = 256\nseed = 1\n"),
       {"[ppo.sampling].max_new_tokens = 256: prompt and answer share training.ctx = 256, so it is at most "
        "255"}},
      {"[run]\nalgorithm = \"grpo\"\n[grpo]\nsampling = 3\n",
       {"'grpo.sampling' is a whole number; it is a section"}},
  };
  for (const BadCase& one : cases) expect_error(one.text, one.fragments);
}

TEST(RolloutDocument, ValuesOfItsOwnKeysAreChecked) {
  const auto replaced = [](const std::string& key, const std::string& value) {
    return without(grpo("", key + " = " + value + "\n"), key);
  };
  const std::vector<std::pair<std::pair<std::string, std::string>, std::string>> cases = {
      {{"group_size", "1"}, "[grpo].group_size = 1: must be a whole number from 2 to 256"},
      {{"group_size", "257"}, "from 2 to 256"},
      {{"clip_range_low", "0"}, "[grpo].clip_range_low = 0: must be a number above 0 and below 1"},
      {{"clip_range_low", "1.0"}, "below 1"},
      {{"clip_range_low", "0.3"}, "is at least clip_range_low = 0.3"},
      {{"kl_coefficient", "-0.1"}, "[grpo].kl_coefficient = -0.1"},
      {{"updates", "0"}, "[grpo].updates = 0"},
      {{"reward_command", "\"python3 r.py\""}, "must be a list of strings, a program and its arguments"},
      {{"reward_command", "[]"}, "reward_command = [\"python3\", \"reward.py\"]"},
      {{"reward_command", "[\"\"]"}, "a program and its arguments"},
      {{"reward_command", "[\"a\", 1]"}, "a program and its arguments"},
      {{"reward_command", "[\"a\\u0000b\"]"}, "a program and its arguments"},
      {{"prompts", "\"\""}, "[grpo].prompts = \"\": must be a path"},
  };
  for (const auto& [change, fragment] : cases)
    expect_error(replaced(change.first, change.second), {fragment});
  std::string warm = grpo();
  warm.replace(warm.find("temperature = 1.0"), 17, "temperature = 0.7");
  expect_error(warm, {"[grpo.sampling].temperature = 0.7: must be 1, as temperature = 1.0"});
}

TEST(RolloutDocument, KeysOfTheKlTermNeedACoefficient) {
  const std::string none = without(grpo("", "kl_coefficient = 0\n"), "kl_coefficient = 0.02");
  EXPECT_EQ(error_of(none), "");
  expect_error(none + "[reference]\nmodel = \"m\"\n", {"[reference]", "kl_coefficient is 0"});
  expect_error(none + "[grpo.kl_schedule]\ntarget = 0.1\n", {"[grpo.kl_schedule]", "which is 0"});
}

TEST(RolloutDocument, APassMayBeWiderThanTheContext) {
  const Document document = load(grpo("micro_batch = 1000\n"));
  EXPECT_EQ(document.training.micro_batch, 1000);
  EXPECT_EQ(document.training.gradient_accumulation, 1);
  EXPECT_EQ(load(grpo("micro_batch = 64\n")).training.gradient_accumulation, 4);
  EXPECT_EQ(load(grpo("micro_batch = 64\ngradient_accumulation = 4\n")).training.gradient_accumulation, 4);
  EXPECT_EQ(load(grpo("gradient_accumulation = 8\n")).training.micro_batch, 32);
}

TEST(RolloutDocument, WhatCannotMatterIsAWarning) {
  const Document epochs = load(grpo("epochs = 3\n"));
  ASSERT_EQ(epochs.warnings.size(), 1U);
  EXPECT_NE(epochs.warnings[0].find("[training].epochs = 3 has no effect"), std::string::npos);
  EXPECT_TRUE(load(grpo("epochs = 1\n")).warnings.empty());
  const Document wide = load(grpo("", "importance_sampling_level = \"sequence\"\n"));
  ASSERT_EQ(wide.warnings.size(), 1U);
  EXPECT_NE(wide.warnings[0].find("0.0004"), std::string::npos);
  const Document top =
      load(ppo("", "", "", "temperature = 0.8\ntop_p = 0.9\nmax_new_tokens = 8\nseed = 1\n"));
  ASSERT_EQ(top.warnings.size(), 1U);
  EXPECT_NE(top.warnings[0].find("top_p = 0.9"), std::string::npos);
}

TEST(RolloutDocument, ConcurrencyFollowsTheUpdateAndTheStep) {
  EXPECT_EQ(load(grpo("micro_batch = 16\n")).training.generation_concurrency, 32);
  EXPECT_EQ(load(without(grpo("", "group_size = 256\n"), "group_size = 8")).training.generation_concurrency,
            256);
  const std::string narrow = without(grpo("", "group_size = 100\n"), "group_size = 8");
  EXPECT_EQ(load(narrow).training.generation_concurrency, 256);
}

TEST(RolloutDocument, ItIsReadButNotRunYet) {
  try {
    require_sft(load(grpo()));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(std::string(error.what()).find("run.toml:2:1: [run].algorithm = \"grpo\""), std::string::npos)
        << error.what();
  }
  require_sft(load(kMinimal));
}

std::string difference(const std::string& before, const std::string& after) {
  return signature_difference(signature(load(before)), signature(load(after)));
}

TEST(RolloutSignature, HoldsWhatDecidesTheResult) {
  const std::string plain = grpo();
  const std::vector<std::string> equal = {
      grpo("generation_concurrency = 3\ngeneration_batch = 64\nshared_prefix_fanout = \"off\"\nthreads = 5\n"
           "micro_batch = 64\n"),
      grpo("", "reward_timeout_seconds = 5\n"),
      grpo("", "", "[observe]\ndirectory = \"d\"\n[metrics]\njsonl = \"m\"\n"),
  };
  for (const std::string& other : equal) {
    EXPECT_EQ(difference(plain, other), "");
    EXPECT_EQ(document_hash(load(plain)), document_hash(load(other)));
  }
  const std::vector<std::pair<std::string, std::string>> changed = {
      {grpo("fast_sampling_context = false\n"), "training.fast_sampling_context was true and is false"},
      {grpo("behavior_logprobs = \"sampled\"\n"), "training.behavior_logprobs was rescored and is sampled"},
      {grpo("", "mask_truncated = true\n"), "grpo.mask_truncated was false and is true"},
      {grpo("", "baseline = \"rloo\"\n"), "grpo.baseline was mean and is leave_one_out"},
      {grpo("", "prompt_order = \"shuffled\"\n"), "grpo.prompt_order was sequential and is shuffled"},
      {grpo("", "reward_mode = \"oneshot\"\n"), "grpo.reward_mode was persistent and is oneshot"},
      {grpo("", "importance_sampling_level = \"sequence\"\n"), "grpo.importance_sampling_level"},
      {grpo("", "", "[grpo.kl_schedule]\nwarmup_updates = 1\n"),
       "grpo.kl_schedule.warmup_updates was not set and is 1"},
      {grpo("", "", "[grpo.dynamic_sampling]\nmax_resample_factor = 2\n"),
       "grpo.dynamic_sampling.max_resample_factor"},
      {grpo("", "", "[grpo.overlong_penalty]\nbuffer_tokens = 2\nmax_penalty = 1\n"),
       "grpo.overlong_penalty"},
      {grpo("", "", "[reference]\nmodel = \"r\"\n"), "reference.ctx was not set and is 256"},
  };
  for (const auto& [other, fragment] : changed) {
    EXPECT_NE(difference(plain, other).find(fragment), std::string::npos) << difference(plain, other);
  }
  EXPECT_NE(
      difference(ppo(), ppo("", "", "[ppo.critic]\ngamma = 0.9\n")).find("ppo.critic.gamma was 1 and is 0.9"),
      std::string::npos);
}

TEST(RolloutSignature, UpdatesMayGrowWhileTheScheduleIsConstant) {
  const auto with_updates = [](const std::string& count, const std::string& training) {
    return without(grpo(training, "updates = " + count + "\n"), "updates = 10");
  };
  EXPECT_EQ(difference(grpo(), with_updates("20", "")), "");
  EXPECT_EQ(difference(with_updates("20", ""), grpo()), "grpo.updates was 20 and is 10");
  const std::string cosine = "lr_scheduler = \"cosine\"\n";
  EXPECT_EQ(difference(grpo(cosine), with_updates("20", cosine)), "grpo.updates was 10 and is 20");
}

}  // namespace
}  // namespace retro::run
