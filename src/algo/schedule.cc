#include "algo/schedule.h"

#include <numbers>

#include "base/det_math.h"

namespace retro::algo {

double Schedule::rate(int64_t step) const {
  if (step < warmup_steps) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const double span = static_cast<double>(horizon - warmup_steps);
  switch (kind) {
    case ScheduleKind::linear:
      return lr * static_cast<double>(horizon - step) / span;
    case ScheduleKind::cosine:
      return lr * 0.5 * (1.0 + det_cos(std::numbers::pi * static_cast<double>(step - warmup_steps) / span));
    case ScheduleKind::constant:
      break;
  }
  return lr;
}

}  // namespace retro::algo
