#include "engine/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace retro::engine {

int64_t optimizer_bytes(OptimizerKind kind, int64_t size) {
  return kind == OptimizerKind::adamw ? 2 * size * int64_t{sizeof(float)} : 0;
}

Optimizer::Optimizer(device::Device& device, const OptimizerOptions& options, int64_t size)
    : device_(device), options_(options) {
  if (options.kind == OptimizerKind::adamw) {
    m_.assign(static_cast<size_t>(size), 0.0F);
    v_.assign(static_cast<size_t>(size), 0.0F);
  }
}

double Optimizer::step(const model::AdapterLayout& layout, std::span<float> weights,
                       std::span<const float> gradient, double lr) {
  double sum = 0;
  for (const model::LoraTarget& target : layout.targets) {
    const auto part = [&](int64_t offset, int64_t count, const char* factor) {
      const double squares =
          device_.sum_of_squares(gradient.subspan(static_cast<size_t>(offset), static_cast<size_t>(count)));
      if (!std::isfinite(squares)) {
        fail(ErrorKind::data,
             "the gradient of {}.{} is not finite; lower training.lr, or set training.max_grad_norm = 1.0; "
             "where "
             "training.checkpoint_dtype is \"f16\", take \"bf16\" (f16 ends at 65504, which gemma3 exceeds)",
             target.name, factor);
      }
      sum += squares;
    };
    part(target.a_offset, target.rank * target.in, "lora_a");
    part(target.bt_offset, target.rank * target.out, "lora_b");
  }
  const double norm = std::sqrt(sum);
  const bool clip = options_.max_grad_norm > 0 && norm > options_.max_grad_norm;
  const auto scale = static_cast<float>(clip ? options_.max_grad_norm / norm : 1.0);
  ++steps_;
  if (options_.kind == OptimizerKind::adamw) {
    device_.adamw({weights, gradient, m_, v_, static_cast<float>(lr), options_.beta1, options_.beta2,
                   options_.eps, options_.weight_decay, scale, steps_});
  } else {
    device_.sgd({weights, gradient, static_cast<float>(lr), options_.weight_decay, scale});
  }
  return norm;
}

std::vector<std::pair<std::string, std::span<const float>>> Optimizer::state() const {
  if (options_.kind == OptimizerKind::sgd) return {};
  return {{"adamw.m", m_}, {"adamw.v", v_}};
}

void Optimizer::restore(int64_t steps, std::span<const std::pair<std::string, std::vector<float>>> state) {
  const auto take = [&](const char* name, std::vector<float>& into) {
    const auto at =
        std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
    if (at == state.end() || at->second.size() != into.size()) {
      fail(ErrorKind::data, "the checkpoint's '{}' does not fit this run's adapter", name);
    }
    into = at->second;
  };
  if (options_.kind == OptimizerKind::adamw) {
    take("adamw.m", m_);
    take("adamw.v", v_);
  }
  steps_ = steps;
}

}  // namespace retro::engine
