// The report of `profile`, as JSON and as text.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "profile/watch.h"
#include "run/document.h"

namespace retro::profile {

/// What the machine can do at most, measured beside the run.
struct Machine {
  int threads = 1;
  double operations = 0;  // fused multiply-adds per second, counted as two
  double bandwidth = 0;   // bytes read per second
};

/// `seconds`: of the run on the wall.
nlohmann::ordered_json make_report(const run::Document& document, const Watch& watch, const Machine& machine,
                                   double seconds, int64_t peak_resident);

/// The same for people, on standard output.
void print_report(const nlohmann::ordered_json& report);

}  // namespace retro::profile
