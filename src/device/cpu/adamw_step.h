#pragma once

#include "base/det_math.h"

namespace retro::device::cpu {

/// AdamW's numbers of one step, each rounded to f32 once.
struct AdamWStep {
  float gradient_scale = 0;
  float beta1 = 0;
  float beta2 = 0;
  float keep = 0;          // 1 - lr·weight_decay
  float step_size = 0;     // lr / (1 - beta1^step)
  float inverse_root = 0;  // 1 / sqrt(1 - beta2^step)
  float eps = 0;
};

/// Of AdamWArgs and whatever else has its rates.
template <typename Args>
AdamWStep adamw_step(const Args& args) {
  const auto power = static_cast<double>(args.step);
  AdamWStep step;
  step.gradient_scale = args.gradient_scale;
  step.beta1 = args.beta1;
  step.beta2 = args.beta2;
  step.keep = static_cast<float>(1 - static_cast<double>(args.lr) * args.weight_decay);
  step.step_size = static_cast<float>(args.lr / (1 - det_pow(args.beta1, power)));
  step.inverse_root = static_cast<float>(det_pow(1 - det_pow(args.beta2, power), -0.5));
  step.eps = args.eps;
  return step;
}

}  // namespace retro::device::cpu
