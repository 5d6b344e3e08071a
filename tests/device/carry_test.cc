// Embeddings in, keys and values into the carry and their gradients out of it: rows that go where they
// belong.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/compare.h"
#include "tests/support/every_setting.h"
#include "tests/support/linear_case.h"
#include "tests/support/test_matrix.h"
#include "tests/support/test_pass.h"

namespace retro::test {
namespace {

using device::DType;

TEST(Embed, IsTheDecodedRowTimesTheScale) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_1, DType::Q8_0, DType::Q6_K}) {
    const int64_t cols = 512;
    const TestWeight table(dtype, 11, cols, Fill::real);
    TestPass pass({{-1, 6}});
    pass.tokens = {3, 0, 10, 10, 7, 3};
    for (const float scale : {1.0F, 25.298221F}) {
      const auto rows = same_under_every_setting([&](device::Device& device) {
        TestMatrix out(6, cols, cols + 3);
        device.run(device::EmbedArgs{table.weight(), out.matrix(), scale}, pass.args());
        EXPECT_TRUE(out.gaps_untouched());
        return floats(out);
      });
      for (int64_t r = 0; r < 6; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<size_t>(pass.tokens[static_cast<size_t>(r)] * cols + c);
          ASSERT_EQ(rows[static_cast<size_t>(r * cols + c)], table.values()[at] * scale) << r << ", " << c;
        }
      }
    }
  }
}

TEST(KvStore, RoundsRowsIntoTheirPlacesAlone) {
  for (const DType dtype : {DType::F32, DType::F16}) {
    for (const int64_t cols : {1, 16, 192, 33}) {
      const TestPass pass({{-1, 10, 4, 7}, {-1, 3}});
      TestMatrix k(pass.rows(), cols, cols + 3);
      TestMatrix v(pass.rows(), cols, cols + 1);
      k.fill(RandomStream(1, "k"));
      v.fill(RandomStream(1, "v"));
      for (const int threads : {1, 2}) {
        const auto device = device::make_cpu_device(threads);
        TestMatrix carry_k(pass.carry_size, cols, cols + 5, dtype);
        TestMatrix carry_v(pass.carry_size, cols, cols + 2, dtype);
        device->run(device::KvStoreArgs{k.matrix(), v.matrix(), carry_k.matrix(), carry_v.matrix()},
                    pass.args());
        TestMatrix expected_k(pass.carry_size, cols, cols, dtype);
        TestMatrix expected_v(pass.carry_size, cols, cols, dtype);
        for (int64_t r = 0; r < pass.rows(); ++r) {
          for (int64_t c = 0; c < cols; ++c) {
            expected_k.set(pass.carry_rows[static_cast<size_t>(r)], c, k.get(r, c));
            expected_v.set(pass.carry_rows[static_cast<size_t>(r)], c, v.get(r, c));
          }
        }
        EXPECT_EQ(carry_k.bytes(), expected_k.bytes());
        EXPECT_EQ(carry_v.bytes(), expected_v.bytes());
        EXPECT_TRUE(carry_k.gaps_untouched() && carry_v.gaps_untouched());
      }
    }
  }
}

TEST(KvLoadGrad, TakesTheRowsOfThePass) {
  const TestPass pass({{-1, 10, 4, 7}, {-1, 3}});
  const int64_t cols = 37;
  TestMatrix carry_dk(pass.carry_size, cols, cols + 3);
  TestMatrix carry_dv(pass.carry_size, cols, cols + 1);
  carry_dk.fill(RandomStream(1, "dk"));
  carry_dv.fill(RandomStream(1, "dv"));
  const auto device = device::make_cpu_device(2);
  TestMatrix dk(pass.rows(), cols, cols + 2);
  TestMatrix dv(pass.rows(), cols, cols + 4);
  device->run(device::KvLoadGradArgs{carry_dk.matrix(), carry_dv.matrix(), dk.matrix(), dv.matrix()},
              pass.args());
  for (int64_t r = 0; r < pass.rows(); ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      EXPECT_EQ(dk.get(r, c), carry_dk.get(pass.carry_rows[static_cast<size_t>(r)], c));
      EXPECT_EQ(dv.get(r, c), carry_dv.get(pass.carry_rows[static_cast<size_t>(r)], c));
    }
  }
  EXPECT_TRUE(dk.gaps_untouched() && dv.gaps_untouched());
}

}  // namespace
}  // namespace retro::test
