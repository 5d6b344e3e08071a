#include "tests/support/linear_case.h"

#include <cstring>

#include "base/random.h"
#include "tensor/dequantize.h"
#include "tests/reference/linear_ref.h"
#include "tests/support/exact_weights.h"
#include "tests/support/random_weights.h"

namespace retro::test {

std::vector<device::DType> decodable_dtypes() {
  std::vector<device::DType> dtypes;
  for (uint32_t id = 0; id < 256; ++id) {
    const tensor::DTypeInfo* info = tensor::find_dtype(id);
    if (info != nullptr && info->decodable) dtypes.push_back(info->dtype);
  }
  return dtypes;
}

TestWeight::TestWeight(device::DType dtype, int64_t rows, int64_t cols, Fill fill, uint64_t seed)
    : dtype_(dtype),
      rows_(rows),
      cols_(cols),
      memory_(static_cast<size_t>(rows * tensor::row_bytes(dtype, cols))),
      values_(static_cast<size_t>(rows * cols)) {
  const std::vector<std::byte> bytes = fill == Fill::exact
                                           ? exact_weights(dtype, rows, cols, seed)
                                           : random_weights(dtype, rows, cols, 0.05F, seed, "linear case");
  if (!bytes.empty()) std::memcpy(memory_.data(), bytes.data(), bytes.size());
  for (int64_t r = 0; r < rows; ++r) {
    tensor::dequantize_row(dtype, memory_.data() + r * tensor::row_bytes(dtype, cols),
                           values_.data() + r * cols, cols);
  }
}

device::Weight TestWeight::weight() const {
  return {memory_.data(), rows_, cols_, dtype_};
}

std::vector<double> TestWeight::doubles() const {
  return {values_.begin(), values_.end()};
}

TestMatrix filled(int64_t rows, int64_t cols, int64_t stride, Fill fill, uint64_t seed) {
  TestMatrix matrix(rows, cols, stride);
  const RandomStream random(seed, "linear case");
  if (fill == Fill::real) {
    matrix.fill(random);
    return matrix;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      matrix.set(r, c, static_cast<double>(random.below(static_cast<uint64_t>(r * cols + c), 5)) - 2);
    }
  }
  return matrix;
}

std::vector<float> floats(const TestMatrix& matrix) {
  const std::vector<double> values = matrix.values();
  return {values.begin(), values.end()};
}

std::vector<float> chain_nt(const std::vector<float>& x, const TestWeight& w, int64_t rows,
                            std::vector<float> start) {
  const device::Weight weight = w.weight();
  return chain_product({x.data(), weight.cols, 1}, {w.values().data(), 1, weight.cols}, rows, weight.rows,
                       weight.cols, std::move(start));
}

std::vector<float> chain_nn(const std::vector<float>& dy, const TestWeight& w, int64_t rows,
                            std::vector<float> start) {
  const device::Weight weight = w.weight();
  return chain_product({dy.data(), weight.rows, 1}, {w.values().data(), weight.cols, 1}, rows, weight.cols,
                       weight.rows, std::move(start));
}

std::vector<int64_t> sizes_around(int64_t tile) {
  std::vector<int64_t> sizes;
  for (int64_t i = 1; i <= tile + 1; ++i) sizes.push_back(i);
  sizes.push_back(2 * tile - 1);
  sizes.push_back(3 * tile);
  return sizes;
}

}  // namespace retro::test
