// From logits to the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace retro::engine {

struct SamplingOptions {
  double temperature = 0.7;  // 0: the likeliest token, the lowest id among equals
  double top_p = 0.95;  // the smallest set of likeliest tokens with at least this mass (Holtzman et al. 2020)
  uint64_t seed = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options), stream_(options.seed, "sampling") {}

  /// Draw number `index` of the stream. The token depends on logits, options and index alone.
  int32_t sample(std::span<const float> logits, uint64_t index);

 private:
  struct Candidate {
    int32_t id;
    double weight;
  };
  SamplingOptions options_;
  RandomStream stream_;
  std::vector<Candidate> candidates_;
};

}  // namespace retro::engine
