#include "tests/reference/gated_ref.h"

#include <cmath>
#include <numbers>

namespace retro::test {
namespace {

const double kRoot = std::sqrt(2 / std::numbers::pi);

}  // namespace

double silu_ref(double x) {
  return x / (1 + std::exp(-x));
}

double silu_slope_ref(double x) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  return sigmoid * (1 + x * (1 - sigmoid));
}

// 1 + tanh u = 2 / (1 + e^-2u), without the cancellation on the negative side.
double gelu_tanh_ref(double x) {
  const double u = kRoot * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}

double gelu_tanh_slope_ref(double x) {
  const double u = kRoot * (x + 0.044715 * x * x * x);
  // ½·(1 + tanh u), and 1 - tanh² u = 4·that·(1 - that).
  const double share = 1 / (1 + std::exp(-2 * u));
  const double rest = 1 / (1 + std::exp(2 * u));
  return share + 2 * x * share * rest * kRoot * (1 + 3 * 0.044715 * x * x);
}

}  // namespace retro::test
