// The keys of runs that sample answers and have them scored.
#pragma once

#include <vector>

#include "run/keys.h"

namespace retro::run {

/// [ppo], [grpo], [observe], [reference] and their keys of [training], as rows of the key table.
std::vector<Key> rollout_keys();

}  // namespace retro::run
