#include "base/thread_pool.h"

#include <hwy/cache_control.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/cgroup.h"
#include "base/error.h"

namespace retro {

namespace {

/// The value of `word` once it differs from `old`, whose writer's other writes are then seen.
uint32_t changed(const std::atomic<uint32_t>& word, uint32_t old) {
  constexpr int kSpins = 2000;  // 30 to 100 microseconds, by processor
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    hwy::Pause();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { loop(i); });
  } catch (const std::exception& failure) {  // a limit on processes or memory
    const size_t started = threads_.size() + 1;
    stop();
    fail(ErrorKind::device, "cannot start {} threads, only {}: {}; set fewer in training.threads", threads,
         started, failure.what());
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stop_ = true;
  ++generation_;
  generation_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::call(int worker) {
  try {
    function_(context_, worker);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::run_erased(Function function, void* context) {
  function_ = function;
  context_ = context;
  pending_.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  if (!threads_.empty()) generation_.notify_all();
  call(0);
  for (uint32_t left = pending_.load(std::memory_order_acquire); left != 0;) left = changed(pending_, left);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::loop(int worker) {
  for (uint32_t seen = 0;;) {
    seen = changed(generation_, seen);
    if (stop_) return;
    call(worker);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

namespace {

// "QUOTA PERIOD" in microseconds, or "max PERIOD".
int quota_cores() {
  double cores = 1 << 20;
  for (const std::string& folder : cgroup_folders()) {
    std::istringstream text(read_system_file(folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (text >> quota >> period && quota > 0 && period > 0) cores = std::min(cores, quota / period);
  }
  return std::max(1, static_cast<int>(cores));
}

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

}  // namespace

int default_threads() {
  constexpr int kMostCpus = 1 << 16;
  const size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(kMostCpus));
  if (!set) return 1;
  CPU_ZERO_S(bytes, set.get());
  if (sched_getaffinity(0, bytes, set.get()) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (!CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) continue;
    std::string siblings = read_system_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                            "/topology/thread_siblings_list");
    if (siblings.empty()) siblings = std::to_string(cpu);
    cores.insert(siblings);
  }
  return std::clamp(static_cast<int>(cores.size()), 1, quota_cores());
}

}  // namespace retro
