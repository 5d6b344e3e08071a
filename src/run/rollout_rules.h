// Rules between the keys of runs that sample answers.
#pragma once

#include "run/document.h"
#include "run/faults.h"

namespace retro::run {

/// Checks what no single key of [ppo], [grpo], [observe] and [reference] can tell, and derives
/// training.generation_concurrency and reference.ctx. After derive_step.
void apply_rollout_rules(Document& document, Faults& faults);

/// micro_batch and gradient_accumulation of such a run: accumulation is ctx / micro_batch, or 1 for a pass
/// wider than ctx, and no other value is taken.
void derive_rollout_step(Document& document, Faults& faults);

}  // namespace retro::run
