#include "tests/support/finite_difference.h"

#include <algorithm>
#include <cmath>

namespace retro::test {

std::vector<double> central_differences(const ScalarFunction& f, std::vector<double> x, double h) {
  std::vector<double> slopes;
  for (double& value : x) {
    const double middle = value;
    value = middle + h;
    const double above = f(x);
    value = middle - h;
    const double below = f(x);
    value = middle;
    slopes.push_back((above - below) / (2 * h));
  }
  return slopes;
}

testing::AssertionResult matches_differences(const std::vector<double>& gradient, const ScalarFunction& f,
                                             const std::vector<double>& x, double tolerance) {
  const std::vector<double> slopes = central_differences(f, x);
  if (gradient.size() != slopes.size() || gradient.empty()) {
    return testing::AssertionFailure()
           << gradient.size() << " derivatives for " << slopes.size() << " variables";
  }
  if (std::all_of(slopes.begin(), slopes.end(), [](double s) { return s == 0; })) {
    return testing::AssertionFailure() << "the function does not depend on any variable";
  }
  for (size_t i = 0; i < slopes.size(); ++i) {
    if (std::abs(gradient[i] - slopes[i]) <= tolerance * std::max(1.0, std::abs(slopes[i]))) continue;
    return testing::AssertionFailure()
           << "variable " << i << ": gradient " << gradient[i] << ", difference " << slopes[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace retro::test
