// Learning rate schedules.
#pragma once

#include <cstdint>

namespace retro::algo {

enum class ScheduleKind { constant, linear, cosine };

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 1e-4;
  int64_t warmup_steps = 0;
  int64_t horizon = 0;  // steps of the whole run; above warmup_steps

  /// The rate of the 0-based step s: lr·(s+1)/w while s < w; then lr, lr·(N−s)/(N−w), or
  /// lr·½(1 + cos π(s−w)/(N−w)).
  double rate(int64_t step) const;
};

}  // namespace retro::algo
