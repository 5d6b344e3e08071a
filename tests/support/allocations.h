// Counts what the program allocates with new; linking it replaces the operators.
#pragma once

#include <cstdint>

namespace retro::test {

/// Calls of operator new on all threads since the program began.
int64_t allocations_so_far();

}  // namespace retro::test
