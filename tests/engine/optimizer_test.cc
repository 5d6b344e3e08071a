// Optimizers over several tensors: against their published updates in double, their state's size, and their
// bytes.
#include "engine/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/error.h"
#include "base/random.h"
#include "tests/reference/optimizer_ref.h"

namespace retro::test {
namespace {

using engine::OptimizerKind;
using engine::OptimizerOptions;
using engine::Parameter;

constexpr int64_t kSteps = 50;

/// A wide and a tall hidden weight, a vector, and a LoRA factor, side by side.
std::vector<Parameter> tensors() {
  return {{"wide", 0, 40, 112, true},
          {"tall", 4480, 90, 30, true},
          {"vector", 7180, 1, 301, false},
          {"factor", 7481, 8, 600, false}};
}
constexpr size_t kWeights = 7481 + 4800;

std::vector<float> uniform(const std::string& name) {
  const RandomStream stream(5, name);
  std::vector<float> values(kWeights);
  for (size_t i = 0; i < kWeights; ++i) values[i] = 2 * stream.uniform(i) - 1;
  return values;
}

/// Gradients of very different sizes, which lean one way, so that there is a momentum.
std::vector<float> gradient(int64_t step) {
  const std::vector<float> lean = uniform("lean");
  std::vector<float> g = uniform("gradient " + std::to_string(step));
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] = (g[i] + 0.5F * lean[i]) * std::pow(10.0F, -static_cast<float>(i % 4));
  }
  return g;
}

OptimizerOptions options_of(OptimizerKind kind, bool quantized_m = false) {
  OptimizerOptions options;
  options.kind = kind;
  options.weight_decay = 0.1F;
  options.max_grad_norm = 0;
  options.lr = 0.02;
  options.quantized_m = quantized_m;
  options.block_size = 256;
  options.fallback_lr = 0.005;
  return options;
}

/// Rate of a step: a schedule that decays.
double rate(int64_t step) {
  return 0.02 / static_cast<double>(step + 9) * 10;
}

std::vector<float> slice(const std::vector<float>& all, const Parameter& p) {
  return {all.begin() + p.offset, all.begin() + p.offset + p.size()};
}

AdamWRates adam_rates(const OptimizerOptions& o, double lr) {
  return {lr, o.beta1, o.beta2, o.eps, o.weight_decay};
}

void plain_adamw(TensorState& state, const std::vector<float>& g, const AdamWRates& rates, int64_t step) {
  for (size_t i = 0; i < g.size(); ++i) {
    AdamWState one{state.w[i], state.m[i], state.v[i]};
    adamw_ref(one, g[i], rates, step);
    state.w[i] = one.w;
    state.m[i] = one.m;
    state.v[i] = one.v;
  }
}

void reference_step(const OptimizerOptions& o, const Parameter& p, TensorState& state,
                    const std::vector<float>& g, int64_t step) {
  const double lr = rate(step);
  switch (o.kind) {
    case OptimizerKind::adamw:
      return plain_adamw(state, g, adam_rates(o, lr), step);
    case OptimizerKind::sgd:
      for (size_t i = 0; i < g.size(); ++i) state.w[i] -= lr * (g[i] + o.weight_decay * state.w[i]);
      return;
    case OptimizerKind::muon:
      if (!p.hidden) return plain_adamw(state, g, adam_rates(o, o.fallback_lr * lr / o.lr), step);
      return muon_ref(state, g, p.rows, p.cols,
                      {lr, o.momentum, o.nesterov, o.ns_steps, o.ns_epsilon, o.weight_decay});
    case OptimizerKind::gefen:
      if (p.size() < o.min_numel) return plain_adamw(state, g, adam_rates(o, lr), step);
      return gefen_ref(state, g, adam_rates(o, lr), o.block_size, o.quantized_m, step);
    case OptimizerKind::adamw8bit:
      return adamw8_ref(state, g, adam_rates(o, lr), step);
  }
}

struct Case {
  const char* name;
  OptimizerOptions options;
  double tolerance;  // of a weight; where moments are rounded, one may be rounded to the other side
  int64_t state_bytes;
  friend void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }
};

OptimizerOptions plain_momentum() {
  OptimizerOptions options = options_of(OptimizerKind::muon);
  options.nesterov = false;
  options.ns_steps = 3;
  return options;
}

constexpr int64_t kAll = kWeights;
constexpr int64_t kHidden = 4480 + 2700;
constexpr int64_t kLarge = 4480 + 4800;    // of at least min_numel
constexpr int64_t kLargeBlocks = 18 + 19;  // of 256
constexpr int64_t kBlocks = 18 + 11 + 2 + 19;
constexpr int64_t kWords = (kAll + 3) / 4;

const Case kCases[] = {
    {"adamw", options_of(OptimizerKind::adamw), 1e-5, 4 * 2 * kAll},
    {"sgd", options_of(OptimizerKind::sgd), 1e-6, 0},
    {"muon", options_of(OptimizerKind::muon), 1e-4, 4 * (kHidden + 2 * (kAll - kHidden))},
    {"muon_without_nesterov", plain_momentum(), 1e-4, 4 * (kHidden + 2 * (kAll - kHidden))},
    {"gefen_shared_v", options_of(OptimizerKind::gefen), 1e-5,
     4 * (kLarge + kLargeBlocks + 2 * (kAll - kLarge))},
    {"gefen_quantized_m", options_of(OptimizerKind::gefen, true), 1e-3,
     4 * (kLarge / 4 + 2 * kLargeBlocks + 2 * (kAll - kLarge))},
    {"adamw8bit", options_of(OptimizerKind::adamw8bit), 1e-3, 4 * 2 * (kWords + kBlocks)},
};

class OptimizerSteps : public testing::TestWithParam<Case> {};

std::vector<float> train(engine::Optimizer& optimizer, std::vector<float> weights, int64_t begin,
                         int64_t end) {
  for (int64_t step = begin; step < end; ++step) optimizer.step(weights, gradient(step + 1), rate(step + 1));
  return weights;
}

TEST_P(OptimizerSteps, FollowThePublishedUpdateFor50Steps) {
  const OptimizerOptions& options = GetParam().options;
  const auto device = device::make_cpu_device(2);
  engine::Optimizer optimizer(*device, options, tensors());
  const std::vector<float> actual = train(optimizer, uniform("w"), 0, kSteps);
  double moved = 0;
  double off = 0;
  for (const Parameter& p : tensors()) {
    const std::vector<float> start = slice(uniform("w"), p);
    TensorState state(start);
    for (int64_t step = 1; step <= kSteps; ++step)
      reference_step(options, p, state, slice(gradient(step), p), step);
    for (size_t i = 0; i < start.size(); ++i) {
      const double found = actual[static_cast<size_t>(p.offset) + i];
      ASSERT_NEAR(found, state.w[i], GetParam().tolerance) << p.name << " " << i;
      moved += std::abs(state.w[i] - start[i]);
      off += std::abs(found - state.w[i]);
    }
  }
  EXPECT_LT(off, 1e-4 * moved);
}

TEST_P(OptimizerSteps, KeepTheStateThatIsPlanned) {
  const auto device = device::make_cpu_device(1);
  engine::Optimizer optimizer(*device, GetParam().options, tensors());
  int64_t bytes = 0;
  for (const auto& [name, values] : optimizer.state()) bytes += static_cast<int64_t>(values.size_bytes());
  EXPECT_EQ(bytes, GetParam().state_bytes);
  EXPECT_EQ(engine::optimizer_bytes(GetParam().options, tensors()).state, bytes);
}

TEST_P(OptimizerSteps, GiveTheSameBytesWhateverTheThreadsAndWhenResumed) {
  const OptimizerOptions& options = GetParam().options;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    const auto device = device::make_cpu_device(threads);
    engine::Optimizer optimizer(*device, options, tensors());
    results.push_back(train(optimizer, uniform("w"), 0, 20));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  const auto device = device::make_cpu_device(2);
  engine::Optimizer first(*device, options, tensors());
  const std::vector<float> half = train(first, uniform("w"), 0, 10);
  std::vector<std::pair<std::string, std::vector<float>>> saved;
  for (const auto& [name, values] : first.state()) {
    saved.emplace_back(name, std::vector<float>(values.begin(), values.end()));
  }
  engine::Optimizer second(*device, options, tensors());
  second.restore(first.steps(), saved);
  EXPECT_EQ(train(second, half, 10, 20), results[0]);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerSteps, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// One variant's first moment is no first moment of the other.
TEST(Optimizer, RefusesAStateOfAnotherVariant) {
  const auto device = device::make_cpu_device(1);
  engine::Optimizer shared(*device, options_of(OptimizerKind::gefen), tensors());
  engine::Optimizer quantized(*device, options_of(OptimizerKind::gefen, true), tensors());
  std::vector<std::pair<std::string, std::vector<float>>> saved;
  for (const auto& [name, values] : shared.state()) {
    saved.emplace_back(name, std::vector<float>(values.begin(), values.end()));
  }
  EXPECT_THROW(quantized.restore(1, saved), Error);
}

// A weight whose gradient is a millionth of its neighbours' still has a second moment: without one the next
// step would be as long as m / eps.
TEST(Optimizer, NeverRoundsASecondMomentOf8BitsToZero) {
  const auto device = device::make_cpu_device(1);
  OptimizerOptions options = options_of(OptimizerKind::adamw8bit);
  options.weight_decay = 0;
  engine::Optimizer optimizer(*device, options, {{"w", 0, 1, 256, false}});
  std::vector<float> weights(256, 0.0F);
  std::vector<float> g(256, 1e-6F);
  g[0] = 1;
  for (int step = 0; step < 20; ++step) optimizer.step(weights, g, 0.01);
  for (const float w : weights) EXPECT_LE(std::abs(w), 0.21F);
}

}  // namespace
}  // namespace retro::test
