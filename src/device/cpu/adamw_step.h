#pragma once

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

}  // namespace retro::device::cpu
