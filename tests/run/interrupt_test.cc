// The first signal asks, the second ends the process with 130, and afterwards signals are as they were.
#include "run/interrupt.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <string>

namespace retro::run {
namespace {

/// Runs `action` in a process of its own: its wait status, and what it wrote to stderr.
int in_child(const std::function<void()>& action, std::string* written = nullptr) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    action();
    ::_exit(0);
  }
  ::close(pipe[1]);
  std::array<char, 256> buffer{};
  for (ssize_t n; (n = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    if (written != nullptr) written->append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

class Interrupt : public testing::TestWithParam<int> {};

TEST_P(Interrupt, FirstSignalAsks) {
  std::string written;
  const int status = in_child(
      [] {
        const InterruptGuard guard("stopping\n");
        if (interrupted()) ::_exit(1);
        ::raise(GetParam());
        ::_exit(interrupted() ? 7 : 2);
      },
      &written);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(written, "stopping\n");
}

TEST_P(Interrupt, SecondSignalEnds) {
  const int status = in_child([] {
    const InterruptGuard guard;
    ::raise(SIGINT);
    ::raise(GetParam());
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST_P(Interrupt, FormerHandlersComeBack) {
  const int status = in_child([] {
    ::signal(GetParam(), SIG_DFL);  // a job in the background starts with SIGINT ignored
    { const InterruptGuard guard; }
    ::raise(GetParam());
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Signals, Interrupt, testing::Values(SIGINT, SIGTERM));

TEST(Interrupt, AskedForWithoutASignal) {
  {
    const InterruptGuard guard;
    EXPECT_FALSE(interrupted());
    request_interrupt();
    EXPECT_TRUE(interrupted());
  }
  EXPECT_FALSE(interrupted());
}

}  // namespace
}  // namespace retro::run
