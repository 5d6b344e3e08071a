// micro_batch, gradient_accumulation and the tokens of a step.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "run/rules.h"

namespace retro::run {

namespace {

constexpr int64_t kWidestDefaultPass = 512;
constexpr int64_t kNarrowestDefaultPass = 64;
constexpr int64_t kPassBesideAccumulation = 32;

bool has_good_pass(int64_t ctx) {
  return ctx >= 2 && largest_divisor(ctx, kWidestDefaultPass) >= kNarrowestDefaultPass;
}

int64_t nearest_good_ctx(int64_t ctx) {
  for (int64_t distance = 1;; ++distance) {
    if (has_good_pass(ctx - distance)) return ctx - distance;
    if (has_good_pass(ctx + distance)) return ctx + distance;
  }
}

bool fits(int64_t step, int64_t ctx) {
  return ctx % step == 0 || step % ctx == 0;
}

int64_t nearest_accumulation(int64_t micro_batch, int64_t wanted, int64_t ctx) {
  // Every multiple of ctx / gcd passes, so the search is short.
  for (int64_t distance = 1;; ++distance) {
    if (wanted > distance && fits(micro_batch * (wanted - distance), ctx)) return wanted - distance;
    if (fits(micro_batch * (wanted + distance), ctx)) return wanted + distance;
  }
}

Position at(const Document& document, std::string_view key) {
  const auto found = document.positions.find(key);
  return found == document.positions.end() ? Position{} : found->second;
}

void derive_both(Document& document, Faults& faults) {
  TrainingSection& training = document.training;
  const int64_t ctx = training.ctx;
  if (!has_good_pass(ctx)) {
    faults.add(
        at(document, "training.ctx"),
        fmt::format("[training].ctx = {}: has no divisor from {} to {} that could be the tokens of a pass "
                    "(micro_batch); the nearest that has one: ctx = {}. Or set micro_batch to a divisor of "
                    "ctx yourself",
                    ctx, kNarrowestDefaultPass, kWidestDefaultPass, nearest_good_ctx(ctx)));
    return;
  }
  training.micro_batch = largest_divisor(ctx, kWidestDefaultPass);
  training.gradient_accumulation = ctx / training.micro_batch;
}

void derive_accumulation(Document& document, Faults& faults) {
  TrainingSection& training = document.training;
  if (training.ctx % training.micro_batch != 0) {
    faults.add(
        at(document, "training.micro_batch"),
        fmt::format("[training].micro_batch = {}: must divide ctx = {} while gradient_accumulation is not "
                    "set, as micro_batch = {}",
                    training.micro_batch, training.ctx, largest_divisor(training.ctx, training.micro_batch)));
    return;
  }
  training.gradient_accumulation = training.ctx / training.micro_batch;
}

}  // namespace

int64_t largest_divisor(int64_t number, int64_t limit) {
  for (int64_t divisor = std::min(number, limit); divisor > 1; --divisor) {
    if (number % divisor == 0) return divisor;
  }
  return 1;
}

void derive_step(Document& document, Faults& faults) {
  TrainingSection& training = document.training;
  for (const char* key : {"training.ctx", "training.micro_batch", "training.gradient_accumulation"}) {
    if (faults.broken(key)) return;
  }
  const bool pass_given = document.given("training.micro_batch");
  const bool accumulation_given = document.given("training.gradient_accumulation");
  if (!pass_given && accumulation_given) training.micro_batch = kPassBesideAccumulation;
  if ((pass_given || accumulation_given) && training.micro_batch > training.ctx) {
    const char* key = pass_given ? "training.micro_batch" : "training.ctx";
    faults.add(
        at(document, key),
        fmt::format("[training].micro_batch = {}{}: a pass of an sft run has at most ctx = {} tokens; set "
                    "micro_batch = {} (gradient_accumulation makes a step larger)",
                    training.micro_batch, pass_given ? "" : " (the default beside gradient_accumulation)",
                    training.ctx, training.ctx));
    return;
  }
  if (!pass_given && !accumulation_given) {
    derive_both(document, faults);
  } else if (!accumulation_given) {
    derive_accumulation(document, faults);
  } else if (!fits(training.step_tokens(), training.ctx)) {
    faults.add(at(document, "training.gradient_accumulation"),
               fmt::format(
                   "[training].gradient_accumulation = {}: the tokens of a step, micro_batch x "
                   "gradient_accumulation = {} x {} = {}, must divide ctx = {} or be a multiple of it, as "
                   "gradient_accumulation = {}",
                   training.gradient_accumulation, training.micro_batch, training.gradient_accumulation,
                   training.step_tokens(), training.ctx,
                   nearest_accumulation(training.micro_batch, training.gradient_accumulation, training.ctx)));
    return;
  }
  if (!accumulation_given && !document.rolls_out()) {
    const bool one = training.gradient_accumulation == 1;
    document.notes.push_back(fmt::format("gradient_accumulation is not set: {} {} of {} tokens {} a step",
                                         training.gradient_accumulation, one ? "pass" : "passes",
                                         training.micro_batch, one ? "makes" : "make"));
  }
}

}  // namespace retro::run
