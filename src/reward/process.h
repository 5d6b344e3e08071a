// A program that is fed and read over pipes, with everything that it starts.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace retro::reward {

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< of exit; 0 where a signal ended it
  int signal = 0;  ///< that ended it; 0 for none

  bool good() const { return code == 0 && signal == 0; }
  /// "exit status 3", "signal 11 (Segmentation fault)".
  std::string text() const;
};

/// The file that the first word of a command names: as a path when it has a slash, else by PATH, else in the
/// working directory. Throws Error(config) when there is none that can be executed.
std::string resolve_program(const std::string& word);

/// A child in a process group of its own, its three streams on pipes. It inherits the working directory and
/// the environment, and no other file of ours. When this process is killed, so is the child; it also is when
/// the thread that made it ends.
class Process {
 public:
  using Clock = std::chrono::steady_clock;

  /// Runs `command` directly, no shell between; the first word as resolve_program takes it. Throws
  /// Error(config) when there is no such program, Error(io) when it cannot be started.
  explicit Process(std::span<const std::string> command);
  /// Kills the group.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Queues bytes for its input; they are written while `next_line` waits.
  void send(std::string_view bytes);
  /// Its input ends behind what is queued.
  void end_input();

  enum class Event {
    line,           ///< a line of output, without its end; the last may have had none
    end,            ///< the output ended
    input_refused,  ///< it closed its input before it had read all (reported once, where `report_refusal`)
    too_long,       ///< a line of more than kLongestLine bytes
    late,           ///< the deadline passed
    interrupted,    ///< `interrupted` said so
  };
  static constexpr size_t kLongestLine = size_t{8} << 20;

  /// Waits for the next line, while input is written and stderr is read, so that neither side can wait for
  /// the other for ever. `interrupted` may be empty.
  Event next_line(std::string& line, Clock::time_point deadline, const std::function<bool()>& interrupted,
                  bool report_refusal);

  /// True when output is there that `next_line` has not given out.
  bool more_output();

  /// Waits for its end until `deadline`, reading stderr; none when it still runs.
  std::optional<ExitStatus> wait_exit(Clock::time_point deadline);

  /// Ends it and everything in its group (SIGKILL, which no program can ignore), then reads what is left of
  /// stderr. Harmless when all are gone.
  void kill_group() noexcept;

  /// The last lines that it wrote to stderr, at most kTailBytes.
  std::string stderr_tail() const;
  static constexpr size_t kTailBytes = 4096;

 private:
  void start(const std::string& program, std::span<const std::string> command);
  /// One round of poll over the pipes; false on a time-out of `wait`.
  void pump(std::chrono::milliseconds wait);
  void write_input();
  /// Reads what there is into `sink`; false when the pipe ended.
  bool read_some(int fd, std::string& sink);
  void read_stderr();
  bool take_line(std::string& line);
  void look_for_exit() noexcept;
  void close_pipe(int& fd) noexcept;

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string queue_;  // for its input, from sent_ on
  size_t sent_ = 0;
  bool input_ends_ = false;
  bool input_refused_ = false;
  bool refusal_told_ = false;
  std::string output_;  // from given_ on
  size_t given_ = 0;
  size_t scanned_ = 0;  // no line end in [given_, scanned_)
  std::string tail_;
  std::optional<ExitStatus> status_;  // once it ended; it is not reaped before its group is killed
  bool reaped_ = false;
};

}  // namespace retro::reward
