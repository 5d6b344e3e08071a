// What this machine can do at most, measured beside the kernels.
#pragma once

namespace retro::bench {

/// Seconds of this thread's processor time.
double thread_seconds();

/// Multiply-adds per second, counted as two operations each, of registers alone, for about `seconds`.
double fma_peak(double seconds);

/// The same of `threads` threads at once, by the clock on the wall.
double fma_peak_of(int threads, double seconds);

/// Bytes per second that `threads` threads read of memory far larger than the caches.
double read_bandwidth(int threads, double seconds);

/// Seconds on the wall.
double wall_seconds();

}  // namespace retro::bench
