// Times as files of ours have them.
#pragma once

#include <string>

namespace retro::run {

/// Now in UTC with milliseconds, as "2024-05-01T12:00:00.123Z" (RFC 3339).
std::string rfc3339_now();

}  // namespace retro::run
