#include "tests/reference/rms_norm_ref.h"

#include <cmath>
#include <cstddef>

namespace retro::test {
namespace {

double root_of(const double* x, size_t n, double eps) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum / static_cast<double>(n) + eps);
}

}  // namespace

std::vector<double> rms_norm_ref(const std::vector<double>& x, const std::vector<double>& weight,
                                 double eps) {
  std::vector<double> y(x.size());
  const size_t n = weight.size();
  for (size_t at = 0; at < x.size(); at += n) {
    const double root = root_of(x.data() + at, n, eps);
    for (size_t i = 0; i < n; ++i) y[at + i] = x[at + i] / root * weight[i];
  }
  return y;
}

// With y_j = x_j·w_j / ρ and dρ/dx_i = x_i / (nρ): dx_i = dy_i·w_i / ρ - x_i / (nρ³)·Σ_j dy_j·w_j·x_j.
RmsNormGradient rms_norm_back_ref(const std::vector<double>& x, const std::vector<double>& weight,
                                  const std::vector<double>& dy, double eps) {
  RmsNormGradient g{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const size_t n = weight.size();
  for (size_t at = 0; at < x.size(); at += n) {
    const double root = root_of(x.data() + at, n, eps);
    double sum = 0;
    double magnitude = 0;
    for (size_t j = 0; j < n; ++j) {
      sum += dy[at + j] * weight[j] * x[at + j];
      magnitude += std::abs(dy[at + j] * weight[j] * x[at + j]);
    }
    const double slope = 1 / (static_cast<double>(n) * root * root * root);
    for (size_t i = 0; i < n; ++i) {
      g.dx[at + i] = dy[at + i] * weight[i] / root - x[at + i] * slope * sum;
      g.magnitude[at + i] = std::abs(dy[at + i] * weight[i] / root) + std::abs(x[at + i]) * slope * magnitude;
    }
  }
  return g;
}

}  // namespace retro::test
