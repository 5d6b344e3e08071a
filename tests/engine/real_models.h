// What the tests on real models share.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/model.h"
#include "tests/support/cache.h"

namespace retro::test {

/// A sequence that asks for every token after the first, each with d loss / d logprob = −1/N.
struct WholeText {
  std::vector<int32_t> ids;
  std::vector<int32_t> targets;
  std::vector<float> logprobs;
  std::vector<float> dlogprobs;

  explicit WholeText(std::vector<int32_t> tokens) : ids(std::move(tokens)) {
    targets.resize(ids.size() - 1);
    std::iota(targets.begin(), targets.end(), 1);
    logprobs.resize(targets.size());
    dlogprobs.assign(targets.size(), -1.0F / static_cast<float>(targets.size()));
  }
  engine::Sequence sequence() { return {ids, targets, logprobs, dlogprobs}; }
  int32_t rows() const { return static_cast<int32_t>(targets.size()); }
  double mean_nll() const {
    return -std::accumulate(logprobs.begin(), logprobs.end(), 0.0) / static_cast<double>(logprobs.size());
  }
};

}  // namespace retro::test
