#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "base/error.h"

namespace retro {
namespace {

TEST(ThreadPool, RangesCoverAllOnceWithEdgesAtMultiplesOfTheGrain) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 16, 100}) {
      for (const int64_t grain : {1, 4, 16}) {
        std::vector<int> seen(static_cast<size_t>(count), 0);
        pool.ranges(count, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_LT(worker, threads);
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE(end % grain == 0 || end == count);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1));
      }
    }
  }
}

TEST(ThreadPool, CarriesAWorkersExceptionToTheCallerAndGoesOn) {
  ThreadPool pool(4);
  for (int failing = 0; failing < 4; ++failing) {
    EXPECT_THROW(pool.run([&](int worker) {
      if (worker == failing) throw std::runtime_error("of a worker");
    }),
                 std::runtime_error);
    std::vector<int> ran(4, 0);
    pool.run([&](int worker) { ran[static_cast<size_t>(worker)] = 1; });
    EXPECT_EQ(ran, std::vector<int>(4, 1));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these reserve terabytes
TEST(ThreadPoolDeathTest, SaysWhenThreadsCannotBeStarted) {
  const auto start_too_many = [] {
    const rlimit limit = {400U << 20, 400U << 20};  // each thread's stack takes 8 MiB of it
    setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(1024);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(error.kind() == ErrorKind::device ? 7 : 8);
    }
    std::_Exit(9);
  };
  EXPECT_EXIT(start_too_many(), ::testing::ExitedWithCode(7),
              "cannot start 1024 threads, only .*training.threads");
}
#endif

TEST(DefaultThreads, AreAtLeastOne) {
  EXPECT_GE(default_threads(), 1);
}

}  // namespace
}  // namespace retro
