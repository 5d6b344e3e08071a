// Comparing a kernel's output with a double reference under a computed bound, and bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace retro::test {

/// What a sum of `terms` products may be off by in f32: (terms + extra)·ε·magnitude + ε·|reference|, where ε
/// = 2⁻²⁴ is half a unit in the last place and magnitude is Σ|a·b| (Higham, Accuracy and Stability of
/// Numerical Algorithms, section 3.1). `extra` counts the further roundings of a term.
double product_bound(int64_t terms, double magnitude, double reference, int64_t extra = 4);

/// Every |actual[i] - expected[i]| <= bounds[i]. Fails, too, on sizes that differ, on nothing to compare, on
/// a NaN or an infinity that is not expected, and on an output of zeros alone where more is expected. The
/// message has the worst index, in rows of `columns` where that is not 0.
testing::AssertionResult within(std::span<const float> actual, std::span<const double> expected,
                                std::span<const double> bounds, int64_t columns = 0);

/// The same bytes; the message has the first that differs and how many do.
testing::AssertionResult same_bits(std::span<const float> actual, std::span<const float> expected,
                                   int64_t columns = 0);

}  // namespace retro::test
