// The program's log on stderr. Its level comes from RETRO_LOG, else RUST_LOG (`trace` … `error`, `off`; an
// entry `retrograd=LEVEL` of a list counts too), else it is `warn`.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace retro {

enum class LogLevel { trace, debug, info, warn, error, off };

bool log_enabled(LogLevel level);
void set_log_level(LogLevel level);

/// Sends finished lines (no line end) to `sink` instead of stderr, so that they do not run into a progress
/// bar; an empty one restores stderr.
void set_log_sink(std::function<void(std::string_view)> sink);

void log_text(LogLevel level, std::string_view text);

/// The level a variable's value asks for, none when it names no level.
std::optional<LogLevel> parse_log_level(std::string_view value);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::debug)) {
    log_text(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
  }
}

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::info)) log_text(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::warn)) log_text(LogLevel::warn, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace retro
