// Text from outside on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace retro::cli {

/// Names and contents of files come from outside: a control character in them must not steer the terminal.
/// Each but line end and tab is replaced by '?'. `text` is to hold whole characters.
std::string without_controls(std::string_view text);

}  // namespace retro::cli
