// What this machine can do at most, measured beside the kernels.
#pragma once

namespace retro::bench {

/// Seconds of this thread's processor time.
double thread_seconds();

/// Multiply-adds per second, counted as two operations each, of registers alone, for about `seconds`.
double fma_peak(double seconds);

}  // namespace retro::bench
