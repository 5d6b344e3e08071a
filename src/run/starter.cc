#include "run/starter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "run/keys.h"
#include "run/toml_file.h"

namespace retro::run {

namespace {

std::string evaluation_text(Algorithm algorithm, const StarterOptions& options) {
  const bool sft = algorithm == Algorithm::sft;
  if (options.evaluation_data) {
    return fmt::format(R"(
[evaluation]
data = {}
every_iterations = {}      # {} between two evaluations; one also follows the last
# max_examples = 200      # all by default, else that many, spread evenly over the file
# patience = 3            # stop after so many evaluations without improvement
)",
                       quote(*options.evaluation_data), sft ? 1 : 10, sft ? "epochs" : "updates");
  }
  return fmt::format(R"(
# Held-out {} of the same format: the {} on them is reported after {}.
# [evaluation]
# data = "heldout.jsonl"
)",
                     sft ? "records" : "prompts", sft ? "loss" : "mean reward",
                     sft ? "each epoch" : "every_iterations updates");
}

std::string checkpointing_text(const StarterOptions& options) {
  if (!options.gradient_checkpointing) {
    return "gradient_checkpointing = false  # true: less memory, about one more forward pass a step\n";
  }
  return fmt::format(
      "gradient_checkpointing = true   # false: more memory, faster steps\n"
      "checkpoint_dtype = {}        # f32 changes no bit; bf16 halves what is kept\n",
      quote(options.checkpoint_dtype));
}

const char* const kHeads[] = {
    "# Supervised fine-tuning: a LoRA adapter from a file of conversations.\n",
    "# Reinforcement learning (PPO) of a LoRA adapter: answers are sampled and scored by a program.\n",
    "# Reinforcement learning (GRPO) of a LoRA adapter: groups of answers are sampled and scored by a "
    "program.\n",
};

std::string head_text(Algorithm algorithm, const StarterOptions& options) {
  return fmt::format(R"({}#   retrograd preview THIS_FILE   shows {}
#   retrograd plan THIS_FILE      shows the memory it takes
#   retrograd train THIS_FILE     trains; add --resume to go on after a stop
# Paths are relative to this file.

[run]
algorithm = "{}"

[model]
path = {}

[output]
path = {}
)",
                     kHeads[static_cast<size_t>(algorithm)],
                     algorithm == Algorithm::sft ? "what will be trained" : "what answers will continue",
                     algorithm_name(algorithm), quote(options.model), quote(options.output));
}

std::string sft_text(const StarterOptions& options) {
  return fmt::format(R"(
[sft]
data = {}
packing = true            # several whole records share a window; they do not see each other
overlong = "error"        # a record longer than ctx: "error", "drop" or "truncate"
)",
                     quote(options.data.value_or("train.jsonl")));
}

std::string rollout_text(Algorithm algorithm, const StarterOptions& options) {
  const std::string_view name = algorithm_name(algorithm);
  std::string text = fmt::format(R"(
[{}]
prompts = {}
# The program that scores answers, and its arguments (docs/rewards.md); run in the folder that you start from.
reward_command = ["python3", "reward.py"]
updates = 100             # each samples answers, has them scored and trains on them
)",
                                 name, quote(options.data.value_or("prompts.jsonl")));
  if (algorithm == Algorithm::ppo) {
    text += R"(rollout_batch_size = 32   # answers of an update
ppo_epochs = 2            # passes over them
clip_range = 0.2
kl_coefficient = 0.05     # a pull towards the policy that sampled

# [ppo.critic]            # on by default; enabled = false takes the whitened rewards
# gamma = 1.0
# gae_lambda = 0.95
)";
  } else {
    text += R"(prompts_per_update = 4
group_size = 8            # answers to each prompt, compared with one another
grpo_epochs = 1           # passes over an update's groups
clip_range_low = 0.2
clip_range_high = 0.28
kl_coefficient = 0.0      # above 0: a pull towards the model as the run begins, for one more forward pass
prompt_order = "shuffled"
# mask_truncated = true   # leaves out answers that max_new_tokens cut
)";
  }
  return text + fmt::format(R"(
[{}.sampling]
temperature = 1.0
top_p = 1.0
max_new_tokens = {}
seed = 42
)",
                            name, std::min<int64_t>(128, options.ctx / 2));
}

std::string lora_text() {
  return R"(
[lora]
rank = 8
alpha = 16.0              # the adapter's effect is scaled by alpha / rank
targets = ["q", "k", "v", "o", "ffn_up", "ffn_down", "ffn_gate"]
dtype = "f16"             # of the stored adapter
seed = 42
)";
}

std::string training_text(Algorithm algorithm, const StarterOptions& options) {
  const bool sft = algorithm == Algorithm::sft;
  std::string text =
      fmt::format(R"(
[training]
{}lr = 1e-4
lr_scheduler = "constant" # or "linear", "cosine": both decay to 0
warmup_steps = 0
max_grad_norm = 1.0       # 0 does not clip
ctx = {}                 # tokens of the longest {}
)",
                  sft ? "epochs = 1\n" : "", options.ctx, sft ? "record" : "prompt with its answer");
  if (sft) {
    text += fmt::format(
        R"(# A step is micro_batch x gradient_accumulation tokens; a smaller micro_batch takes less memory
# and gives the same gradient as long as the product stays.
micro_batch = {}
gradient_accumulation = {}
)",
        options.micro_batch, options.gradient_accumulation);
  } else {
    text += fmt::format(
        R"(# Tokens of a pass: less takes less memory; more than ctx lets a group share its prompt in one pass.
micro_batch = {}
)",
        options.micro_batch);
  }
  return text + checkpointing_text(options);
}

std::string checkpoint_text(Algorithm algorithm, const StarterOptions& options) {
  const std::string observe =
      algorithm == Algorithm::sft
          ? ""
          : "\n[observe]\ndirectory = \"observe\"   # open its index.html to read the answers\n";
  return fmt::format(R"(
[checkpoint]
directory = {}
mode = "steps"            # or "best_eval", "steps_and_best_eval" with [evaluation]
every_steps = 50
keep_last = 2
{}
# [metrics]
# jsonl = "metrics.jsonl" # one JSON object a line
)",
                     quote(options.checkpoints), observe);
}

}  // namespace

std::string starter_document(const std::string& algorithm, const StarterOptions& options) {
  for (const Algorithm known : {Algorithm::sft, Algorithm::ppo, Algorithm::grpo}) {
    if (algorithm_name(known) != algorithm) continue;
    const std::string own = known == Algorithm::sft ? sft_text(options) : rollout_text(known, options);
    return head_text(known, options) + own + lora_text() + training_text(known, options) +
           evaluation_text(known, options) + checkpoint_text(known, options);
  }
  fail(ErrorKind::config,
       "no starter document for '{}': this build has sft, ppo and grpo, as `retrograd new sft`", algorithm);
}

}  // namespace retro::run
