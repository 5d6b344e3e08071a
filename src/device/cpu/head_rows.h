#pragma once

namespace retro::device::cpu {

/// Σ e^z of a row of logits as sum·e^maximum.
struct SoftmaxSum {
  float maximum = 0;
  double sum = 0;
};

}  // namespace retro::device::cpu
