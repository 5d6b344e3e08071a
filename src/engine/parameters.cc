#include "engine/parameters.h"

namespace retro::engine {

std::vector<Parameter> parameters_of(const model::AdapterLayout& layout) {
  std::vector<Parameter> parameters;
  for (const model::LoraTarget& target : layout.targets) {
    parameters.push_back({target.name + ".lora_a", target.a_offset, target.rank, target.in, false});
    parameters.push_back({target.name + ".lora_b", target.bt_offset, target.rank, target.out, false});
  }
  return parameters;
}

}  // namespace retro::engine
