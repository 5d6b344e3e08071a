// Rows of numbers for tests of kernels: what a kernel must not read or write is made to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "device/op_args.h"

namespace retro::test {

/// Memory whose last byte lies before a page that cannot be touched.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes);
  ~GuardedBytes();
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  GuardedBytes(GuardedBytes&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::byte* mapping_ = nullptr;
  size_t mapped_ = 0;
};

/// A matrix of F32, F16 or BF16 that is NaN everywhere until it is filled; the elements between the rows stay
/// NaN, and a guard page follows the last element of the last row.
class TestMatrix {
 public:
  TestMatrix(int64_t rows, int64_t cols, int64_t stride, device::DType dtype = device::DType::F32);
  TestMatrix(int64_t rows, int64_t cols) : TestMatrix(rows, cols, cols) {}

  device::Matrix matrix() const;
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

  double get(int64_t row, int64_t col) const;
  void set(int64_t row, int64_t col, double value);  // rounded to the dtype
  /// Uniform in [-scale, scale), by the stream's numbers from `index` on.
  void fill(const RandomStream& stream, double scale = 1);
  void fill(double value);

  std::vector<double> values() const;    // [rows, cols]
  std::vector<std::byte> bytes() const;  // of [rows, cols], without what lies between the rows
  /// False where something wrote between the rows.
  bool gaps_untouched() const;

 private:
  int64_t rows_;
  int64_t cols_;
  int64_t stride_;
  device::DType dtype_;
  int64_t element_;
  GuardedBytes memory_;
};

}  // namespace retro::test
