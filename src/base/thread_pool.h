// A persistent pool that runs one function on every worker; work is split by static ranges.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace retro {

/// Runs `work(worker)` on each of `size()` workers; the caller is worker 0. Not reentrant. Who waits first
/// spins for some tens of microseconds: a step is thousands of short runs, and waking a sleeper takes as long
/// as one of them.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  /// Returns when every worker is done; rethrows the first exception of a worker. Allocates nothing.
  template <typename Work>
  void run(Work&& work) {
    using Type = std::remove_reference_t<Work>;
    run_erased([](void* context, int worker) { (*static_cast<Type*>(context))(worker); },
               const_cast<void*>(static_cast<const void*>(&work)));
  }

  /// Splits [0, count) into `size()` contiguous ranges whose inner edges are multiples of `grain`, and calls
  /// `work(begin, end, worker)` for each that is not empty. Which worker gets what depends on count, grain
  /// and size alone.
  template <typename Work>
  void ranges(int64_t count, int64_t grain, Work&& work) {
    const int64_t blocks = (count + grain - 1) / grain;
    if (blocks <= 1 || size() == 1) {
      if (count > 0) work(int64_t{0}, count, 0);
      return;
    }
    run([&](int worker) {
      const int64_t first = blocks * worker / size() * grain;
      const int64_t last = blocks * (worker + 1) / size() * grain;
      const int64_t end = last < count ? last : count;
      if (first < end) work(first, end, worker);
    });
  }

 private:
  using Function = void (*)(void*, int);
  void run_erased(Function function, void* context);
  void loop(int worker);
  void stop();
  void call(int worker);

  std::vector<std::thread> threads_;
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> pending_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // of failure_
  Function function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr failure_;
};

/// Cores that this process may run on, one a physical core, within its cgroup's quota; at least 1.
int default_threads();

}  // namespace retro
