// Root-mean-square normalization of vectors in double, and its gradient, by the formula.
#pragma once

#include <vector>

namespace retro::test {

/// y = x / sqrt(mean(x²) + eps)·weight for each run of weight.size() elements of x.
std::vector<double> rms_norm_ref(const std::vector<double>& x, const std::vector<double>& weight, double eps);

/// dx for dy, and the sum of the magnitudes each element is made of.
struct RmsNormGradient {
  std::vector<double> dx;
  std::vector<double> magnitude;
};

RmsNormGradient rms_norm_back_ref(const std::vector<double>& x, const std::vector<double>& weight,
                                  const std::vector<double>& dy, double eps);

}  // namespace retro::test
