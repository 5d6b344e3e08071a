// The optimizer step over the flat buffer of trained weights.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "engine/parameters.h"

namespace retro::engine {

enum class OptimizerKind { adamw, sgd, muon, gefen, adamw8bit };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  float beta1 = 0.9F;  // of AdamW, in whatever optimizer
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0;
  double max_grad_norm = 1;  // 0: no clipping

  // muon
  double lr = 1;  // the rate that a schedule scales; the fallback's is scaled by as much
  double fallback_lr = 1e-3;
  float momentum = 0.95F;
  bool nesterov = true;
  int32_t ns_steps = 5;
  float ns_epsilon = 1e-7F;

  // gefen
  bool quantized_m = false;
  int64_t block_size = 1024;  // a power of two, at least 4
  int64_t min_numel = 4096;
};

struct OptimizerBytes {
  int64_t state = 0;    // what a checkpoint keeps
  int64_t scratch = 0;  // while a step is made

  int64_t total() const { return state + scratch; }
};

OptimizerBytes optimizer_bytes(const OptimizerOptions& options, const std::vector<Parameter>& parameters);

class UpdateRule;

class Optimizer {
 public:
  Optimizer(device::Device& device, const OptimizerOptions& options, std::vector<Parameter> parameters);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Clips by the global norm and updates the weights with rate `lr`. Returns the norm before clipping. A
  /// gradient that is not finite throws Error(data) naming the tensor, before any moment or weight is
  /// touched.
  double step(std::span<float> weights, std::span<const float> gradient, double lr);

  /// Steps taken so far, and the state by name, for a checkpoint. Codes of 8 bits lie four to a number.
  int64_t steps() const { return steps_; }
  std::vector<std::pair<std::string, std::span<const float>>> state() const;
  /// Takes back what state() gave. Throws Error(data) when names or sizes differ.
  void restore(int64_t steps, std::span<const std::pair<std::string, std::vector<float>>> state);

 private:
  device::Device& device_;
  OptimizerOptions options_;
  std::vector<Parameter> parameters_;
  std::unique_ptr<UpdateRule> rule_;
  int64_t steps_ = 0;
};

}  // namespace retro::engine
