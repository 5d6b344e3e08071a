// Cosines and sines of rotary position embeddings (Su et al. 2021), made once for all positions of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hyperparameters.h"

namespace retro::model {

struct RopeTable {
  RopeSettings settings;
  std::vector<float> values;  // [positions][dims/2 cosines, dims/2 sines]
};

/// For positions below `positions` of a run whose sequences have at most `context` tokens. Angles are
/// computed in double by functions of ours, so the table is the same on every machine.
RopeTable make_rope_table(const RopeSettings& settings, int32_t dims, int32_t positions, int32_t context);

}  // namespace retro::model
