// SHA-256 (FIPS 180-4), to compare with fingerprints that other programs made.
#pragma once

#include <string>
#include <string_view>

namespace retro::test {

/// 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace retro::test
