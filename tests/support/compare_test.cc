#include "tests/support/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace retro::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Within, TakesWhatIsAtTheBoundAndRefusesWhatIsBeyond) {
  const std::vector<double> expected = {1, 2};
  const std::vector<double> bounds = {0.5, 0};
  EXPECT_TRUE(within(std::vector<float>{1.5F, 2}, expected, bounds));
  EXPECT_FALSE(within(std::vector<float>{1.5000001F, 2}, expected, bounds));
  EXPECT_FALSE(within(std::vector<float>{1, 2.0000002F}, expected, bounds));
}

TEST(Within, RefusesValuesThatAreNotFiniteUnlessExpected) {
  const std::vector<double> bounds = {1e30, 1e30};
  EXPECT_FALSE(within(std::vector<float>{1, kNan}, std::vector<double>{1, 2}, bounds));
  EXPECT_FALSE(within(std::vector<float>{1, kInfinity}, std::vector<double>{1, 2}, bounds));
  EXPECT_FALSE(within(std::vector<float>{1, 2}, std::vector<double>{1, std::nan("")}, bounds));
  EXPECT_FALSE(within(std::vector<float>{1, -kInfinity}, std::vector<double>{1, HUGE_VAL}, bounds));
  EXPECT_TRUE(within(std::vector<float>{1, kNan}, std::vector<double>{1, std::nan("")}, bounds));
  EXPECT_TRUE(within(std::vector<float>{1, kInfinity}, std::vector<double>{1, HUGE_VAL}, bounds));
}

TEST(Within, RefusesNothingZerosAndOtherSizes) {
  EXPECT_FALSE(within({}, {}, {}));
  EXPECT_FALSE(within(std::vector<float>{0, 0}, std::vector<double>{0, 1e-9}, std::vector<double>{1, 1}));
  EXPECT_TRUE(within(std::vector<float>{0, 0}, std::vector<double>{0, 0}, std::vector<double>{0, 0}));
  EXPECT_FALSE(within(std::vector<float>{1}, std::vector<double>{1, 1}, std::vector<double>{1, 1}));
  EXPECT_FALSE(within(std::vector<float>{1}, std::vector<double>{1}, std::vector<double>{1, 1}));
}

TEST(Within, NamesTheWorstPlace) {
  const auto result = within(std::vector<float>{0, 1, 2, 9}, std::vector<double>{0, 0, 0, 0},
                             std::vector<double>{1, 0.5, 1, 1}, 2);
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("3 of 4"), std::string::npos) << result.message();
  EXPECT_NE(std::string(result.message()).find("[1, 1]"), std::string::npos) << result.message();
}

TEST(ProductBound, HoldsForASumInOrderAndIsTight) {
  // 1 + 2^-24 + … + 2^-24: every addition rounds to even, so the sum stays 1.
  constexpr int kTerms = 64;
  float sum = 1;
  for (int i = 1; i < kTerms; ++i) sum += 0x1p-24F;
  const double exact = 1 + (kTerms - 1) * 0x1p-24;
  const double error = exact - static_cast<double>(sum);
  EXPECT_GT(error, 0);
  EXPECT_LE(error, product_bound(kTerms, exact, exact));
  EXPECT_GT(error, 0.9 * product_bound(kTerms, exact, exact, 0) - 0x1p-23);
}

TEST(SameBits, SeesTheSignOfZeroAndTakesEqualNans) {
  EXPECT_TRUE(same_bits(std::vector<float>{0, kNan}, std::vector<float>{0, kNan}));
  EXPECT_FALSE(same_bits(std::vector<float>{-0.0F}, std::vector<float>{0.0F}));
  EXPECT_FALSE(same_bits(std::vector<float>{1}, std::vector<float>{1, 2}));
  EXPECT_FALSE(same_bits({}, {}));
  const auto result = same_bits(std::vector<float>{1, 2, 3, 4}, std::vector<float>{1, 2, 5, 6}, 2);
  EXPECT_NE(std::string(result.message()).find("2 of 4"), std::string::npos) << result.message();
  EXPECT_NE(std::string(result.message()).find("[1, 0]"), std::string::npos) << result.message();
}

}  // namespace
}  // namespace retro::test
