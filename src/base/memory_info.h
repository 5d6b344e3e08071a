// What the operating system says about memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace retro {

/// Bytes of this process in memory now (VmRSS), pages of mapped files among them.
int64_t resident_bytes();

/// The most that resident_bytes() has been (VmHWM).
int64_t peak_resident_bytes();

/// Bytes this process holds that no file backs (RssAnon).
int64_t anonymous_bytes();

/// Bytes of this program's own code and libraries in memory (RssFile when the process started, before it
/// mapped any file of a user).
int64_t program_file_bytes();

/// Bytes that this process can still take: the machine's available memory, or what its control group has
/// left, whichever is less.
int64_t available_bytes();

/// The value of a line `KEY: 123 kB` of a /proc file's text, in bytes; -1 without one.
int64_t parse_kib_line(std::string_view text, std::string_view key);

}  // namespace retro
