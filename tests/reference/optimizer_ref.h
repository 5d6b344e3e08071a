// The optimizers' published updates in double, one parameter at a time.
#pragma once

#include <cstdint>

namespace retro::test {

struct AdamWState {
  double w = 0;
  double m = 0;
  double v = 0;
};

struct AdamWRates {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
};

/// Algorithm 2 of Loshchilov and Hutter 2019 with the schedule in lr, step counted from 1.
void adamw_ref(AdamWState& state, double gradient, const AdamWRates& rates, int64_t step);

}  // namespace retro::test
