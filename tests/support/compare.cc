#include "tests/support/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace retro::test {
namespace {

std::string place(size_t i, int64_t columns) {
  if (columns == 0) return fmt::format("[{}]", i);
  const auto width = static_cast<size_t>(columns);
  return fmt::format("[{}, {}]", i / width, i % width);
}

bool all_zero(auto values) {
  return std::ranges::all_of(values, [](auto v) { return v == 0; });
}

}  // namespace

double product_bound(int64_t terms, double magnitude, double reference, int64_t extra) {
  constexpr double kEpsilon = 0x1p-24;
  return kEpsilon * (static_cast<double>(terms + extra) * magnitude + std::abs(reference));
}

testing::AssertionResult within(std::span<const float> actual, std::span<const double> expected,
                                std::span<const double> bounds, int64_t columns) {
  if (actual.size() != expected.size() || actual.size() != bounds.size()) {
    return testing::AssertionFailure()
           << fmt::format("{} values, {} expected, {} bounds", actual.size(), expected.size(), bounds.size());
  }
  if (actual.empty()) return testing::AssertionFailure() << "nothing was compared";
  if (all_zero(actual) && !all_zero(expected)) {
    return testing::AssertionFailure() << "all " << actual.size() << " values are zero";
  }
  size_t failures = 0;
  size_t worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double value = actual[i];
    const bool same = value == expected[i] || (std::isnan(value) && std::isnan(expected[i]));
    const double error = std::abs(value - expected[i]);
    if (same || (std::isfinite(value) && error <= bounds[i])) continue;
    ++failures;
    const double excess = std::isfinite(error) ? error / std::max(bounds[i], 1e-300) : HUGE_VAL;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (failures == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << fmt::format(
             "{} of {} values are out of bounds; the worst, {}: {} for {}, off by {} where {} is allowed",
             failures, actual.size(), place(worst, columns), actual[worst], expected[worst],
             std::abs(actual[worst] - expected[worst]), bounds[worst]);
}

testing::AssertionResult same_bits(std::span<const float> actual, std::span<const float> expected,
                                   int64_t columns) {
  if (actual.size() != expected.size()) {
    return testing::AssertionFailure()
           << fmt::format("{} values, {} expected", actual.size(), expected.size());
  }
  if (actual.empty()) return testing::AssertionFailure() << "nothing was compared";
  size_t failures = 0;
  size_t first = 0;
  for (size_t i = actual.size(); i-- > 0;) {
    if (std::bit_cast<uint32_t>(actual[i]) == std::bit_cast<uint32_t>(expected[i])) continue;
    ++failures;
    first = i;
  }
  if (failures == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << fmt::format(
             "{} of {} values differ; the first, {}: {} (0x{:08x}) for {} (0x{:08x})", failures,
             actual.size(), place(first, columns), actual[first], std::bit_cast<uint32_t>(actual[first]),
             expected[first], std::bit_cast<uint32_t>(expected[first]));
}

}  // namespace retro::test
