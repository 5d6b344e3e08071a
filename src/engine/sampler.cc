#include "engine/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/det_math.h"
#include "base/error.h"

namespace retro::engine {

int32_t Sampler::sample(std::span<const float> logits, uint64_t index) {
  if (!std::all_of(logits.begin(), logits.end(), [](float z) { return z < INFINITY; })) {  // -inf is a logit
    fail(ErrorKind::data, "the model's logits are not finite: the adapter or the model is damaged");
  }
  const auto best = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options_.temperature == 0) return best;
  const auto top = static_cast<double>(logits[static_cast<size_t>(best)]);
  candidates_.clear();
  double total = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const double exponent = (static_cast<double>(logits[id]) - top) / options_.temperature;
    // Below e^-40 a token is never drawn: 24 random bits do not reach there.
    if (!(exponent > -40)) continue;
    const double weight = det_exp(exponent);
    candidates_.push_back({static_cast<int32_t>(id), weight});
    total += weight;
  }
  if (options_.top_p < 1) {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
    });
    double mass = 0;
    size_t kept = 0;
    while (kept < candidates_.size() && (kept == 0 || mass < options_.top_p * total)) {
      mass += candidates_[kept++].weight;
    }
    candidates_.resize(kept);
    total = mass;
  }
  double left = static_cast<double>(stream_.uniform(index)) * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return candidates_.back().id;
}

}  // namespace retro::engine
