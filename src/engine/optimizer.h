// The optimizer step over the flat buffer of adapter weights: one row an optimizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/adapter_layout.h"

namespace retro::engine {

enum class OptimizerKind { adamw, sgd };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0;
  double max_grad_norm = 1;  // 0: no clipping
};

/// Bytes of an optimizer's state for `size` weights.
int64_t optimizer_bytes(OptimizerKind kind, int64_t size);

class Optimizer {
 public:
  Optimizer(device::Device& device, const OptimizerOptions& options, int64_t size);

  /// Clips by the global norm and updates the weights with rate `lr`. Returns the norm before clipping. A
  /// gradient that is not finite throws Error(data) naming the tensor, before any moment or weight is
  /// touched.
  double step(const model::AdapterLayout& layout, std::span<float> weights, std::span<const float> gradient,
              double lr);

  /// Steps taken so far, and the moments by name, for a checkpoint.
  int64_t steps() const { return steps_; }
  std::vector<std::pair<std::string, std::span<const float>>> state() const;
  /// Takes back what state() gave. Throws Error(data) when names or sizes differ.
  void restore(int64_t steps, std::span<const std::pair<std::string, std::vector<float>>> state);

 private:
  device::Device& device_;
  OptimizerOptions options_;
  int64_t steps_ = 0;
  std::vector<float> m_;
  std::vector<float> v_;
};

}  // namespace retro::engine
