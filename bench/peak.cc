#include "bench/peak.h"

#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <cstdint>
#include <ctime>

HWY_BEFORE_NAMESPACE();
namespace retro::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 12 chains hide a latency of 4 cycles at 2 (or 3) multiply-adds a cycle.
constexpr int kChains = 12;

/// Operations done in `rounds` rounds; what they come to goes to `result`.
double multiply_add(int64_t rounds, float* result) {
  const hn::CappedTag<float, 16> d;
  hn::Vec<decltype(d)> sum[kChains];
  HWY_UNROLL(12)
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  const auto factor = hn::Set(d, 0.999F);
  const auto term = hn::Set(d, 0.001F);
  for (int64_t k = 0; k < rounds; ++k) {
    HWY_UNROLL(12)
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], factor, term);
  }
  auto total = sum[0];
  HWY_UNROLL(12)
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sum[i]);
  *result = hn::GetLane(total);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::bench {

HWY_EXPORT(multiply_add);

double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double fma_peak(double seconds) {
  constexpr int64_t kRounds = 20000;
  float result = 0;
  double operations = 0;
  const double start = thread_seconds();
  double elapsed = 0;
  do {
    operations += HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &result);
    elapsed = thread_seconds() - start;
  } while (elapsed < seconds);
  volatile float keep = result;
  (void)keep;
  return operations / elapsed;
}

}  // namespace retro::bench
#endif  // HWY_ONCE
