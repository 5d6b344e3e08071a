// SIGINT and SIGTERM: the first asks the run to stop at its next boundary, the second ends the process.
#pragma once

namespace retro::run {

/// While one lives, the first SIGINT or SIGTERM sets the flag that `interrupted` reads, and a second one ends
/// the process at once with exit code 130. Restores the former handlers and clears the flag when it goes. At
/// most one at a time.
class InterruptGuard {
 public:
  /// `notice` is written to stderr at the first signal; it must outlive the guard (a literal). Null: nothing.
  explicit InterruptGuard(const char* notice = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Whether a stop was asked for; read at step boundaries.
bool interrupted() noexcept;

/// Asks for a stop as a first signal does.
void request_interrupt() noexcept;

}  // namespace retro::run
