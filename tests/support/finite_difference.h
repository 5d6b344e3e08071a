// Central differences of a scalar function in double.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace retro::test {

using ScalarFunction = std::function<double(const std::vector<double>&)>;

/// (f(x + h·e_i) - f(x - h·e_i)) / 2h for each i, of a function whose values and third derivatives are of
/// order 1.
std::vector<double> central_differences(const ScalarFunction& f, std::vector<double> x, double h = 1e-4);

/// |gradient - differences| <= tolerance·max(1, |differences|) in every element, and not all of them zero.
testing::AssertionResult matches_differences(const std::vector<double>& gradient, const ScalarFunction& f,
                                             const std::vector<double>& x, double tolerance = 1e-6);

}  // namespace retro::test
