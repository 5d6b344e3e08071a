// Operands of matrix products for tests, and the products by chains of multiply-adds in f32.
#pragma once

#include <cstdint>
#include <vector>

#include "device/op_args.h"
#include "tests/support/test_matrix.h"

namespace retro::test {

/// Every type that tensor::dequantize_row knows: the kernels must know each.
std::vector<device::DType> decodable_dtypes();

enum class Fill {
  exact,  // small integers: sums are exact in any order
  real,   // uniform in [-1, 1); weights in the range of a trained model's
};

/// A weight whose bytes end at a guard page.
class TestWeight {
 public:
  TestWeight(device::DType dtype, int64_t rows, int64_t cols, Fill fill, uint64_t seed = 1);

  device::Weight weight() const;
  const std::vector<float>& values() const { return values_; }  // dequantized, [rows, cols]
  std::vector<double> doubles() const;

 private:
  device::DType dtype_;
  int64_t rows_;
  int64_t cols_;
  GuardedBytes memory_;
  std::vector<float> values_;
};

/// A matrix of f32 with `stride - cols` NaNs between its rows.
TestMatrix filled(int64_t rows, int64_t cols, int64_t stride, Fill fill, uint64_t seed);

/// [rows, cols], without what lies between the rows.
std::vector<float> floats(const TestMatrix& matrix);

/// start + x·wᵀ and start + dy·w as chains in the order of k.
std::vector<float> chain_nt(const std::vector<float>& x, const TestWeight& w, int64_t rows,
                            std::vector<float> start);
std::vector<float> chain_nn(const std::vector<float>& dy, const TestWeight& w, int64_t rows,
                            std::vector<float> start);

/// Sizes around multiples of `tile`: 1 … tile - 1, tile, tile + 1, 2·tile - 1, 3·tile.
std::vector<int64_t> sizes_around(int64_t tile);

}  // namespace retro::test
