// Lines typed by a person, with editing and history on a terminal.
#pragma once

#include <optional>
#include <string>

namespace retro::cli {

/// The next line of standard input without its end; none at the end of input, or when a stop is asked for.
/// The prompt is shown on a terminal.
std::optional<std::string> read_line(const char* prompt);

}  // namespace retro::cli
