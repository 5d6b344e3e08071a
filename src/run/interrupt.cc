#include "run/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace retro::run {

namespace {

constexpr int kExitInterrupted = 130;
constexpr std::array kSignals = {SIGINT, SIGTERM};

// A handler may touch lock-free atomics only.
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);
std::atomic<bool> g_interrupted = false;
std::atomic<bool> g_guarded = false;
std::atomic<const char*> g_notice = nullptr;
std::array<struct sigaction, kSignals.size()> g_former;

void on_signal(int) {
  const int saved_errno = errno;
  if (g_interrupted.exchange(true)) ::_exit(kExitInterrupted);
  if (const char* notice = g_notice.load()) {
    if (::write(STDERR_FILENO, notice, std::strlen(notice)) < 0) {
      // The notice is a courtesy: without a terminal the run stops all the same.
    }
  }
  errno = saved_errno;
}

}  // namespace

InterruptGuard::InterruptGuard(const char* notice) {
  RETRO_CHECK(!g_guarded.exchange(true));
  g_interrupted = false;
  g_notice = notice;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &g_former[i]);
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &g_former[i], nullptr);
  g_notice = nullptr;
  g_interrupted = false;
  g_guarded = false;
}

bool interrupted() noexcept {
  return g_interrupted.load();
}

void request_interrupt() noexcept {
  g_interrupted = true;
}

}  // namespace retro::run
