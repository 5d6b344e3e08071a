// The tensors that a run trains, as the optimizer sees them: ranges of one flat buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/adapter_layout.h"

namespace retro::engine {

struct Parameter {
  std::string name;  // as errors name it: "blk.0.attn_q.weight.lora_a"
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  bool hidden = false;  // a 2-D weight of the base's blocks

  int64_t size() const { return rows * cols; }
};

/// In the order of the buffer, which they fill without gaps.
std::vector<Parameter> parameters_of(const model::AdapterLayout& layout);

}  // namespace retro::engine
