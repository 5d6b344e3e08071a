#include "cli/line_reader.h"

#include <editline/readline.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "run/interrupt.h"

namespace retro::cli {

namespace {

// Of a pipe or a file. A signal does not end a read, and may reach another thread, so that the wait looks up
// now and then.
std::optional<std::string> read_plain_line() {
  constexpr int kWaitMilliseconds = 100;
  static std::string read_ahead;
  while (!run::interrupted()) {
    if (const size_t end = read_ahead.find('\n'); end != std::string::npos) {
      std::string line = read_ahead.substr(0, end);
      read_ahead.erase(0, end + 1);
      return line;
    }
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, kWaitMilliseconds) <= 0) continue;
    std::array<char, 1 << 16> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count > 0) {
      read_ahead.append(bytes.data(), static_cast<size_t>(count));
      continue;
    }
    if (read_ahead.empty()) break;
    return std::exchange(read_ahead, {});  // the last line may have no end
  }
  return std::nullopt;
}

// The editor drops the letters that the locale's characters do not have, and text here is UTF-8.
void take_utf8() {
  static const bool once = [] {
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(::nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
    return true;
  }();
  (void)once;
}

}  // namespace

std::optional<std::string> read_line(const char* prompt) {
  if (isatty(STDIN_FILENO) == 0) return read_plain_line();
  take_utf8();
  char* typed = readline(prompt);
  if (typed == nullptr) return std::nullopt;
  std::string line(typed);
  std::free(typed);
  if (!line.empty()) add_history(line.c_str());
  return line;
}

}  // namespace retro::cli
