#include "bench/peak.h"

#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <chrono>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"

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

/// A sum over `count` floats, which is a multiple of 64.
float sum_all(const float* values, int64_t count) {
  const hn::CappedTag<float, 16> d;
  constexpr int64_t kStep = 64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kStep) {
    for (int64_t j = 0; j < kStep; j += lanes) sum = hn::Add(sum, hn::LoadU(d, values + i + j));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::bench {

HWY_EXPORT(multiply_add);
HWY_EXPORT(sum_all);

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

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

// Work done per second, `work(worker)` being called on all threads until `seconds` have passed.
template <typename Work>
double rate_of(int threads, double seconds, const Work& work) {
  ThreadPool pool(threads);
  std::vector<double> done(static_cast<size_t>(threads), 0);
  const double start = wall_seconds();
  pool.run([&](int worker) {
    do {
      done[static_cast<size_t>(worker)] += work(worker);
    } while (wall_seconds() - start < seconds);
  });
  return std::accumulate(done.begin(), done.end(), 0.0) / (wall_seconds() - start);
}

}  // namespace

double fma_peak_of(int threads, double seconds) {
  std::vector<float> results(static_cast<size_t>(threads));
  return rate_of(threads, seconds, [&](int worker) {
    return HWY_DYNAMIC_DISPATCH(multiply_add)(5000, &results[static_cast<size_t>(worker)]);
  });
}

double read_bandwidth(int threads, double seconds) {
  constexpr int64_t kFloats = 32 << 20;  // 128 MiB a thread
  const std::vector<float> values(static_cast<size_t>(kFloats * threads), 1.0F);
  std::vector<float> sums(static_cast<size_t>(threads));
  return rate_of(threads, seconds, [&](int worker) {
    sums[static_cast<size_t>(worker)] +=
        HWY_DYNAMIC_DISPATCH(sum_all)(values.data() + worker * kFloats, kFloats);
    return static_cast<double>(kFloats * sizeof(float));
  });
}

}  // namespace retro::bench
#endif  // HWY_ONCE
