#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "cli/terminal_text.h"

namespace retro::cli {

namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kFirstLineSeconds = 2;
constexpr double kLineSeconds = 5;
constexpr size_t kWidestBar = 30;
constexpr size_t kNarrowestBar = 6;
constexpr int kUsualColumns = 80;

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kPlain = "\x1b[0m";

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsualColumns;
}

void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // a report that nobody can read stops no run
    text.remove_prefix(static_cast<size_t>(n));
  }
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool set_to_something(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

/// The first `count` characters.
std::string_view cut(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!is_continuation(text[at]) && count-- == 0) break;
  }
  return text.substr(0, at);
}

}  // namespace

Screen standard_error() {
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  Screen screen;
  screen.interactive = ::isatty(STDERR_FILENO) == 1 && capable;
  screen.color = screen.interactive && !set_to_something("NO_COLOR");
  screen.columns = terminal_columns;
  screen.write = write_stderr;
  screen.seconds = steady_seconds;
  return screen;
}

ProgressReporter::ProgressReporter(Screen screen) : screen_(std::move(screen)) {
  set_log_sink([this](std::string_view text) { line(text); });
}

ProgressReporter::~ProgressReporter() {
  set_log_sink({});
  erase();
}

void ProgressReporter::note(std::string_view text) {
  line(text);
}

void ProgressReporter::warn(std::string_view text) {
  const std::lock_guard lock(mutex_);
  print(fmt::format("{}warning:{} {}", screen_.color ? kYellow : "", screen_.color ? kPlain : "",
                    without_controls(text)));
}

void ProgressReporter::line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  print(without_controls(text));
}

void ProgressReporter::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void ProgressReporter::progress(std::string_view phase, int64_t done, int64_t total,
                                std::string_view detail) {
  const std::lock_guard lock(mutex_);
  const double now = screen_.seconds();
  const bool fresh = !running_ || phase_.name != phase;
  if (fresh) begin(phase, now);
  phase_.done = done;
  phase_.total = total;
  phase_.detail = detail;
  phase_.meter.add(now, done);
  const bool ended = total > 0 && done >= total;
  if (ended) running_ = false;
  if (screen_.interactive) {
    if (ended) return erase();
    if (!fresh && now - phase_.shown < kRedrawSeconds) return;
    phase_.shown = now;
    return draw();
  }
  const double wait = phase_.lines ? kLineSeconds : kFirstLineSeconds;
  if (ended ? !phase_.lines : now - phase_.shown < wait) return;
  phase_.lines = true;
  phase_.shown = now;
  const std::string end = ended ? fmt::format("  in {}", format_duration(now - phase_.begun)) : std::string();
  print(without_controls(phase_.name) + figures() + end + "  " + without_controls(phase_.detail));
}

void ProgressReporter::begin(std::string_view phase, double now) {
  phase_ = Phase();
  phase_.name = phase;
  phase_.begun = phase_.shown = now;
  running_ = true;
}

void ProgressReporter::print(std::string_view text) {
  const bool again = drawn_;
  erase();
  while (text.ends_with(' ')) text.remove_suffix(1);
  screen_.write(fmt::format("{}\n", text));
  if (again) draw();
}

void ProgressReporter::erase() {
  if (drawn_) screen_.write(kEraseLine);
  drawn_ = false;
}

void ProgressReporter::draw() {
  // One write, so that the line never shows half.
  screen_.write(fmt::format("{}{}", kEraseLine, bar_line()));
  drawn_ = true;
}

/// "  120/300  40%  3.1/s  0:58 left"
std::string ProgressReporter::figures() const {
  std::string text = "  " + format_count(phase_.done);
  const bool bounded = phase_.total > 0;
  if (bounded) {
    const double part = static_cast<double>(phase_.done) / static_cast<double>(phase_.total);
    text += fmt::format("/{}  {}%", format_count(phase_.total),
                        static_cast<int>(100 * std::clamp(part, 0.0, 1.0)));
  }
  const auto rate = phase_.meter.rate();
  if (rate) text += "  " + format_rate(*rate);
  if (rate && bounded && phase_.done < phase_.total) {
    text +=
        fmt::format("  {} left", format_duration(static_cast<double>(phase_.total - phase_.done) / *rate));
  }
  return text;
}

std::string ProgressReporter::bar_line() const {
  // The last column stays free: some terminals wrap when it is written.
  const auto columns = static_cast<size_t>(std::max(screen_.columns() - 1, 1));
  const std::string name = without_controls(phase_.name);
  const std::string behind =
      figures() + (phase_.detail.empty() ? "" : "  " + without_controls(phase_.detail));
  const size_t taken = characters(name) + characters(behind) + 4;
  std::string bar;
  if (phase_.total > 0 && taken + kNarrowestBar <= columns) {
    const size_t width = std::min(columns - taken, kWidestBar);
    const double part = static_cast<double>(phase_.done) / static_cast<double>(phase_.total);
    const auto filled = static_cast<size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(width));
    bar = "  [" + std::string(filled, '=') + (filled < width ? ">" : "") +
          std::string(filled < width ? width - filled - 1 : 0, ' ') + "]";
  }
  return std::string(cut(name + bar + behind, columns));
}

}  // namespace retro::cli
