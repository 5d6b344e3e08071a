#include "tests/support/test_matrix.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/half.h"

namespace retro::test {

GuardedBytes::GuardedBytes(size_t bytes) : bytes_(bytes) {
  constexpr size_t kPage = 4096;
  const size_t usable = (bytes + kPage - 1) / kPage * kPage;
  mapped_ = usable + kPage;
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  mapping_ = static_cast<std::byte*>(memory);
  if (mprotect(mapping_ + usable, kPage, PROT_NONE) != 0) std::abort();
  data_ = mapping_ + usable - bytes;
}

GuardedBytes::GuardedBytes(GuardedBytes&& other) noexcept
    : data_(other.data_),
      bytes_(other.bytes_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_) {}

GuardedBytes::~GuardedBytes() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

TestMatrix::TestMatrix(int64_t rows, int64_t cols, int64_t stride, device::DType dtype)
    : rows_(rows),
      cols_(cols),
      stride_(stride),
      dtype_(dtype),
      element_(dtype == device::DType::F32 ? 4 : 2),
      memory_(rows == 0 ? 0 : static_cast<size_t>(((rows - 1) * stride + cols) * element_)) {
  std::memset(memory_.data(), 0xff, memory_.size());  // a NaN in each of the dtypes
}

device::Matrix TestMatrix::matrix() const {
  return {memory_.data(), cols_, stride_, dtype_};
}

double TestMatrix::get(int64_t row, int64_t col) const {
  const std::byte* p = memory_.data() + (row * stride_ + col) * element_;
  if (dtype_ == device::DType::F32) {
    float value = 0;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
  return dtype_ == device::DType::F16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
}

void TestMatrix::set(int64_t row, int64_t col, double value) {
  std::byte* p = memory_.data() + (row * stride_ + col) * element_;
  const auto single = static_cast<float>(value);
  if (dtype_ == device::DType::F32) {
    std::memcpy(p, &single, sizeof(single));
    return;
  }
  const uint16_t bits =
      dtype_ == device::DType::F16 ? tensor::f32_to_f16(single) : tensor::f32_to_bf16(single);
  std::memcpy(p, &bits, sizeof(bits));
}

void TestMatrix::fill(const RandomStream& stream, double scale) {
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < cols_; ++c) {
      set(r, c, scale * (2 * static_cast<double>(stream.uniform(static_cast<uint64_t>(r * cols_ + c))) - 1));
    }
  }
}

void TestMatrix::fill(double value) {
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < cols_; ++c) set(r, c, value);
  }
}

std::vector<double> TestMatrix::values() const {
  std::vector<double> all;
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < cols_; ++c) all.push_back(get(r, c));
  }
  return all;
}

std::vector<std::byte> TestMatrix::bytes() const {
  std::vector<std::byte> all;
  for (int64_t r = 0; r < rows_; ++r) {
    const std::byte* row = memory_.data() + r * stride_ * element_;
    all.insert(all.end(), row, row + cols_ * element_);
  }
  return all;
}

bool TestMatrix::gaps_untouched() const {
  for (int64_t r = 0; r + 1 < rows_; ++r) {
    const std::byte* row = memory_.data() + r * stride_ * element_;
    for (int64_t b = cols_ * element_; b < stride_ * element_; ++b) {
      if (row[b] != std::byte{0xff}) return false;
    }
  }
  return true;
}

}  // namespace retro::test
