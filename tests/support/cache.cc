#include "tests/support/cache.h"

#include <cstdio>
#include <cstdlib>

namespace retro::test {

std::filesystem::path cached(std::string_view name) {
  const char* folder = std::getenv("RETRO_CACHE");
  const char* home = std::getenv("HOME");
  const std::filesystem::path cache =
      folder != nullptr ? std::filesystem::path(folder)
                        : std::filesystem::path(home != nullptr ? home : "/root") / ".cache/retrograd";
  const auto path = cache / name;
  if (!std::filesystem::exists(path)) {
    std::fprintf(stderr, "%s is missing; run ./dev fetch\n", path.c_str());
    std::exit(1);
  }
  return path;
}

}  // namespace retro::test
