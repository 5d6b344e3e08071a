#include "run/rfc3339.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

namespace retro::run {

std::string rfc3339_now() {
  using namespace std::chrono;
  const auto now = time_point_cast<milliseconds>(system_clock::now());
  const auto whole = floor<seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(whole)),
                     (now - whole).count());
}

}  // namespace retro::run
