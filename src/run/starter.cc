#include "run/starter.h"

#include <fmt/format.h>

#include "base/error.h"
#include "run/toml_file.h"

namespace retro::run {

namespace {

std::string evaluation_text(const StarterOptions& options) {
  if (options.evaluation_data) {
    return fmt::format(R"(
[evaluation]
data = {}
every_iterations = 1      # epochs between two evaluations; one also follows the last epoch
# max_examples = 200      # all by default, else that many, spread evenly over the file
# patience = 3            # stop after so many evaluations without improvement
)",
                       quote(*options.evaluation_data));
  }
  return R"(
# Held-out records of the same format: the loss on them is reported after each epoch.
# [evaluation]
# data = "heldout.jsonl"
)";
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

}  // namespace

std::string starter_document(const std::string& algorithm, const StarterOptions& options) {
  if (algorithm != "sft") {
    fail(ErrorKind::config, "no starter document for '{}': this build has sft, as `retrograd new sft`",
         algorithm);
  }
  const std::string head =
      fmt::format(R"(# Supervised fine-tuning: a LoRA adapter from a file of conversations.
#   retrograd preview THIS_FILE   shows what will be trained
#   retrograd plan THIS_FILE      shows the memory it takes
#   retrograd train THIS_FILE     trains; add --resume to go on after a stop
# Paths are relative to this file.

[run]
algorithm = "sft"

[model]
path = {}

[output]
path = {}

[sft]
data = {}
packing = true            # several whole records share a window; they do not see each other
overlong = "error"        # a record longer than ctx: "error", "drop" or "truncate"

[lora]
rank = 8
alpha = 16.0              # the adapter's effect is scaled by alpha / rank
targets = ["q", "k", "v", "o", "ffn_up", "ffn_down", "ffn_gate"]
dtype = "f16"             # of the stored adapter
seed = 42
)",
                  quote(options.model), quote(options.output), quote(options.data));
  const std::string training = fmt::format(R"(
[training]
epochs = 1
lr = 1e-4
lr_scheduler = "constant" # or "linear", "cosine": both decay to 0
warmup_steps = 0
max_grad_norm = 1.0       # 0 does not clip
ctx = {}                 # tokens of the longest record
# A step is micro_batch x gradient_accumulation tokens; a smaller micro_batch takes less memory
# and gives the same gradient as long as the product stays.
micro_batch = {}
gradient_accumulation = {}
)",
                                           options.ctx, options.micro_batch, options.gradient_accumulation);
  const std::string checkpoint = fmt::format(R"(
[checkpoint]
directory = {}
mode = "steps"            # or "best_eval", "steps_and_best_eval" with [evaluation]
every_steps = 50
keep_last = 2

# [metrics]
# jsonl = "metrics.jsonl" # one JSON object a line
)",
                                             quote(options.checkpoints));
  return head + training + checkpointing_text(options) + evaluation_text(options) + checkpoint;
}

}  // namespace retro::run
