#include "reward/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace retro::reward {

namespace {

using std::chrono::milliseconds;

/// Both ends are closed in programs that are started.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail(ErrorKind::io, "a pipe: {}", std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read = -1;
  int write = -1;
};

void set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    fail(ErrorKind::io, "a pipe: {}", std::strerror(errno));
  }
}

/// Holds SIGPIPE back in this thread, so that a write to a pipe without a reader is an error and no death.
class NoBrokenPipeSignal {
 public:
  NoBrokenPipeSignal() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~NoBrokenPipeSignal() {
    const timespec now{};
    if (!was_pending_) {
      while (sigtimedwait(&broken_pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipeSignal(const NoBrokenPipeSignal&) = delete;
  NoBrokenPipeSignal& operator=(const NoBrokenPipeSignal&) = delete;

 private:
  sigset_t broken_pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

bool executable_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Runs in the child between fork and exec, so it only makes system calls; a failure goes to `report`.
[[noreturn]] void become(const char* program, char* const* arguments, int in, int out, int err, int report,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // What was ignored stays so over an exec.
  for (const int number : {SIGPIPE, SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  if (::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0) {
    ::execv(program, arguments);
  }
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &why, sizeof why);
  ::_exit(127);
}

// Ends that lie on 0 to 2 (where a caller of ours closed those) would be lost in the child's dup2.
int above_standard(int fd) {
  if (fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(fd);
  if (moved < 0) fail(ErrorKind::io, "a pipe: {}", std::strerror(errno));
  return moved;
}

void move_above_standard(Pipe& pipe) {
  pipe.read = above_standard(std::exchange(pipe.read, -1));
  pipe.write = above_standard(std::exchange(pipe.write, -1));
}

}  // namespace

std::string ExitStatus::text() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("exit status {}", code);
}

std::string resolve_program(const std::string& word) {
  if (word.find('/') != std::string::npos) {
    if (executable_file(word)) return word;
    std::error_code error;
    fail(ErrorKind::config, "{} {}; name a program, as python3 or ./reward.sh", word,
         std::filesystem::exists(word, error) ? "is no file that can be executed (chmod +x it?)"
                                              : "does not exist (paths are from the working directory)");
  }
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!word.empty()) {
    const size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const std::filesystem::path path = std::filesystem::path(folder.empty() ? "." : folder) / word;
    if (executable_file(path)) return path.string();
    if (colon == std::string_view::npos) break;
    folders.remove_prefix(colon + 1);
  }
  if (!word.empty() && executable_file(word)) return "./" + word;
  fail(ErrorKind::config, "'{}' is no program in PATH or the working directory; name one, as python3", word);
}

Process::Process(std::span<const std::string> command) {
  if (command.empty()) fail(ErrorKind::config, "the command is empty; name a program, as python3");
  start(resolve_program(command.front()), command);
}

void Process::start(const std::string& program, std::span<const std::string> command) {
  Pipe in, out, err, report;
  for (Pipe* pipe : {&in, &out, &err, &report}) move_above_standard(*pipe);
  for (const int ours : {in.write, out.read, err.read}) set_nonblocking(ours);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail(ErrorKind::io, "cannot start {}: {}", program, std::strerror(errno));
  if (child == 0) {
    become(program.c_str(), arguments.data(), in.read, out.write, err.write, report.write, parent);
  }
  // The child does the same; whoever comes first, the group is there before anything is sent to it.
  ::setpgid(child, child);
  pid_ = child;
  in_ = std::exchange(in.write, -1);
  out_ = std::exchange(out.read, -1);
  err_ = std::exchange(err.read, -1);
  ::close(std::exchange(report.write, -1));
  int why = 0;
  ssize_t got = 0;
  do got = ::read(report.read, &why, sizeof why);
  while (got < 0 && errno == EINTR);
  if (got == sizeof why) {
    kill_group();
    fail(ErrorKind::config, "cannot start {}: {}{}", program, std::strerror(why),
         why == ENOEXEC ? " (does it begin with a line as #!/bin/sh?)" : "");
  }
}

Process::~Process() {
  kill_group();
  close_pipe(in_);
  close_pipe(out_);
  close_pipe(err_);
}

void Process::close_pipe(int& fd) noexcept {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

void Process::send(std::string_view bytes) {
  if (sent_ == queue_.size()) {
    queue_.clear();
    sent_ = 0;
  }
  queue_ += bytes;
}

void Process::end_input() {
  input_ends_ = true;
  if (sent_ == queue_.size()) close_pipe(in_);
}

void Process::write_input() {
  const NoBrokenPipeSignal guard;
  while (in_ >= 0 && sent_ < queue_.size()) {
    const ssize_t written = ::write(in_, queue_.data() + sent_, queue_.size() - sent_);
    if (written > 0) {
      sent_ += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      input_refused_ = true;
      close_pipe(in_);
      return;
    }
  }
  if (input_ends_) close_pipe(in_);
}

bool Process::read_some(int fd, std::string& sink) {
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got > 0) {
      sink.append(bytes.data(), static_cast<size_t>(got));
      return true;
    }
    if (got == 0) return false;
    if (errno == EAGAIN) return true;
    if (errno != EINTR) return false;
  }
}

void Process::read_stderr() {
  if (!read_some(err_, tail_)) close_pipe(err_);
  if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
}

void Process::pump(milliseconds wait) {
  std::array<pollfd, 3> polled{};
  nfds_t count = 0;
  const auto watch = [&](int fd, short events) {
    if (fd >= 0) polled.at(count++) = {fd, events, 0};
  };
  if (sent_ < queue_.size()) watch(in_, POLLOUT);
  // Output that nobody asks for must not fill memory.
  if (output_.size() - given_ <= kLongestLine) watch(out_, POLLIN);
  watch(err_, POLLIN);
  if (::poll(polled.data(), count, static_cast<int>(wait.count())) <= 0) return;
  for (nfds_t i = 0; i < count; ++i) {
    if (polled.at(i).revents == 0) continue;
    if (polled.at(i).fd == in_) {
      write_input();
    } else if (polled.at(i).fd == out_) {
      if (!read_some(out_, output_)) close_pipe(out_);
    } else if (polled.at(i).fd == err_) {
      read_stderr();
    }
  }
}

bool Process::take_line(std::string& line) {
  const size_t end = output_.find('\n', scanned_);
  const bool last = end == std::string::npos && out_ < 0;
  if (end == std::string::npos && !(last && given_ < output_.size())) {
    scanned_ = output_.size();
    return false;
  }
  line.assign(output_, given_, (last ? output_.size() : end) - given_);
  given_ = scanned_ = last ? output_.size() : end + 1;
  if (given_ > output_.size() / 2) {
    output_.erase(0, given_);
    given_ = scanned_ = 0;
  }
  return true;
}

Process::Event Process::next_line(std::string& line, Clock::time_point deadline,
                                  const std::function<bool()>& interrupted, bool report_refusal) {
  // Short enough that an end of the program, or an interrupt in another thread, is seen soon.
  constexpr milliseconds kRound(50);
  for (;;) {
    if (take_line(line)) return line.size() > kLongestLine ? Event::too_long : Event::line;
    if (output_.size() - given_ > kLongestLine) return Event::too_long;
    if (out_ < 0) return Event::end;
    if (input_refused_ && report_refusal && !std::exchange(refusal_told_, true)) return Event::input_refused;
    if (interrupted && interrupted()) return Event::interrupted;
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds(0)) return Event::late;
    const size_t before = output_.size();
    pump(std::min(left, kRound));
    // What it left running may hold the pipes open for ever; what it wrote itself is in them already.
    if (reaped_ && output_.size() == before) close_pipe(out_);
    look_for_exit();
    if (status_) kill_group();
  }
}

bool Process::more_output() {
  if (given_ == output_.size() && out_ >= 0) pump(milliseconds(0));
  return given_ < output_.size();
}

void Process::look_for_exit() noexcept {
  if (status_ || pid_ < 0) return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return;
  status_ = info.si_code == CLD_EXITED ? ExitStatus{info.si_status, 0} : ExitStatus{0, info.si_status};
}

std::optional<ExitStatus> Process::wait_exit(Clock::time_point deadline) {
  constexpr milliseconds kRound(10);
  for (;;) {
    look_for_exit();
    if (status_) return status_;
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds(0)) return std::nullopt;
    if (err_ >= 0 || out_ >= 0) {
      pump(std::min(left, kRound));
    } else {
      ::poll(nullptr, 0, static_cast<int>(std::min(left, kRound).count()));
    }
  }
}

void Process::kill_group() noexcept {
  if (pid_ < 0 || reaped_) return;
  look_for_exit();
  // Before the leader is reaped: until then its number, and so that of the group, is no one else's.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  int raw = 0;
  while (::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (!status_) {
    status_ = WIFSIGNALED(raw) ? ExitStatus{0, WTERMSIG(raw)} : ExitStatus{WEXITSTATUS(raw), 0};
  }
  // A pipe holds what was written to it; a program that left the group may keep it open, so no waiting.
  constexpr int kRounds = 64;
  for (int i = 0; i < kRounds && err_ >= 0; ++i) {
    pollfd polled{err_, POLLIN, 0};
    if (::poll(&polled, 1, 0) <= 0) break;
    read_stderr();
  }
}

std::string Process::stderr_tail() const {
  std::string_view text = tail_;
  if (text.size() > kTailBytes) text.remove_prefix(text.size() - kTailBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text::mend_utf8(text).text;
}

}  // namespace retro::reward
