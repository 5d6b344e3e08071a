// The linear operation in double, by plain loops, and the chains of f32 multiply-adds that the kernels
// promise.
#pragma once

#include <cstdint>
#include <vector>

namespace retro::test {

/// y = x·wᵀ + (scale·x·aᵀ)·bt, all row-major: x [rows, in], w [out, in], a [rank, in], bt [rank, out].
struct LinearInput {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  int64_t rank = 0;
  double scale = 0;
  std::vector<double> x;
  std::vector<double> w;
  std::vector<double> a;
  std::vector<double> bt;
};

/// Values, and beside each the same sums of the magnitudes of their terms, by which rounding is judged.
struct Judged {
  std::vector<double> value;
  std::vector<double> magnitude;
};

struct LinearOutput {
  Judged y;
  Judged u;  // scale·x·aᵀ
};

LinearOutput linear_ref(const LinearInput& input);

struct LinearGradients {
  Judged dx;   // dy·w + du·a
  Judged du;   // scale·dy·btᵀ
  Judged da;   // duᵀ·x
  Judged dbt;  // uᵀ·dy
};

/// The gradients of Σ dy∘y for dy [rows, out].
LinearGradients linear_back_ref(const LinearInput& input, const std::vector<double>& dy);

/// c[m, n] (+)= a[m, k]·b[k, n], each element the chain fma(a[i, k], b[k, j], c[i, j]) for k = 0, 1, … in
/// f32. Element (i, k) of a is a[i·a_row + k·a_step], of b b[k·b_row + j·b_step].
struct ChainOperand {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t step = 0;
};
std::vector<float> chain_product(const ChainOperand& a, const ChainOperand& b, int64_t m, int64_t n,
                                 int64_t depth, std::vector<float> c);

}  // namespace retro::test
