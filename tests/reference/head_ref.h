// Log-probabilities of queried tokens in double, and their gradient with respect to the hidden rows.
#pragma once

#include <cstdint>
#include <vector>

namespace retro::test {

struct HeadQuery {
  int32_t row = 0;
  int32_t token = 0;
};

/// h [rows, in], w [vocabulary, in], row-major.
struct HeadInput {
  int64_t in = 0;
  int64_t vocabulary = 0;
  std::vector<double> h;
  std::vector<double> w;
  std::vector<HeadQuery> queries;
  double softcap = 0;  // 0: none
  double inverse_temperature = 1;
};

/// logprob(row, token) = z[token] - log Σ e^z with z = cap(h[row]·wᵀ)·inverse_temperature, and the magnitude
/// of the worst logit's terms.
struct HeadOutput {
  std::vector<double> logprobs;
  std::vector<double> magnitude;
};
HeadOutput head_ref(const HeadInput& input);

/// d Σ_q dlogprobs[q]·logprob(q) / dh, and the sum of the magnitudes each element is made of.
struct HeadGradient {
  std::vector<double> dh;
  std::vector<double> magnitude;
};
HeadGradient head_back_ref(const HeadInput& input, const std::vector<double>& dlogprobs);

}  // namespace retro::test
