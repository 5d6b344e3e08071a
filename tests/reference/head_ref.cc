#include "tests/reference/head_ref.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace retro::test {
namespace {

struct Logits {
  std::vector<double> z;
  std::vector<double> slope;  // dz / d(h·wᵀ)
  double lse = 0;
  double coarsest = 0;
};

Logits logits_of(const HeadInput& input, int32_t row) {
  Logits logits;
  for (int64_t t = 0; t < input.vocabulary; ++t) {
    double sum = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < input.in; ++i) {
      const double term =
          input.h[static_cast<size_t>(row * input.in + i)] * input.w[static_cast<size_t>(t * input.in + i)];
      sum += term;
      magnitude += std::abs(term);
    }
    const double c = input.softcap;
    const double capped = c > 0 ? c * std::tanh(sum / c) : sum;
    logits.z.push_back(capped * input.inverse_temperature);
    logits.slope.push_back((c > 0 ? 1 - capped / c * (capped / c) : 1) * input.inverse_temperature);
    logits.coarsest = std::max(logits.coarsest, (magnitude + c) * input.inverse_temperature);
  }
  const double top = *std::max_element(logits.z.begin(), logits.z.end());
  double sum = 0;
  for (const double z : logits.z) sum += std::exp(z - top);
  logits.lse = top + std::log(sum);
  return logits;
}

}  // namespace

HeadOutput head_ref(const HeadInput& input) {
  HeadOutput output;
  for (const HeadQuery& query : input.queries) {
    const Logits logits = logits_of(input, query.row);
    output.logprobs.push_back(logits.z[static_cast<size_t>(query.token)] - logits.lse);
    output.magnitude.push_back(logits.coarsest);
  }
  return output;
}

HeadGradient head_back_ref(const HeadInput& input, const std::vector<double>& dlogprobs) {
  HeadGradient g{std::vector<double>(input.h.size()), std::vector<double>(input.h.size())};
  for (size_t q = 0; q < input.queries.size(); ++q) {
    const HeadQuery& query = input.queries[q];
    const Logits logits = logits_of(input, query.row);
    for (int64_t t = 0; t < input.vocabulary; ++t) {
      const double p = std::exp(logits.z[static_cast<size_t>(t)] - logits.lse);
      const double hit = t == query.token ? 1 : 0;
      for (int64_t i = 0; i < input.in; ++i) {
        const auto at = static_cast<size_t>(query.row * input.in + i);
        const double w = input.w[static_cast<size_t>(t * input.in + i)];
        g.dh[at] += dlogprobs[q] * (hit - p) * logits.slope[static_cast<size_t>(t)] * w;
        g.magnitude[at] += std::abs(dlogprobs[q]) * std::max(1.0, input.inverse_temperature) *
                           (hit + p * (1 + logits.coarsest)) * std::abs(w);
      }
    }
  }
  return g;
}

}  // namespace retro::test
