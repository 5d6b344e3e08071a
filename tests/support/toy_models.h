// One toy model of each form that this build computes.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/toy_gguf.h"

namespace retro::test {

struct ToyModel {
  std::string name;
  ToySpec spec;
};

/// For messages of tests: the name.
void PrintTo(const ToyModel& toy, std::ostream* out);

/// Every architecture, and every variant of one that computes something else; windows and long contexts are
/// short enough that 40 tokens reach beyond them. tests/data/toy_NAME.json holds reference numbers of each.
std::span<const ToyModel> toy_models();

/// The model `name` of them.
const ToySpec& toy_model(std::string_view name);

}  // namespace retro::test
