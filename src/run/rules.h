// Rules between keys, and the values that follow from others.
#pragma once

#include "run/document.h"
#include "run/faults.h"

namespace retro::run {

/// Checks what no single key can tell and fills in every derived value, after the keys were stored. Reads
/// RETRO_THREADS and RETRO_REQUIRE_GPU_RESIDENT.
void apply_rules(Document& document, const Overrides& overrides, Faults& faults);

/// The largest divisor of `number` that is at most `limit`; both at least 1.
int64_t largest_divisor(int64_t number, int64_t limit);

/// Derives micro_batch and gradient_accumulation where they are not given, and checks the tokens of a step.
void derive_step(Document& document, Faults& faults);

}  // namespace retro::run
