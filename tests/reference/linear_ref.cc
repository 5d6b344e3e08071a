#include "tests/reference/linear_ref.h"

#include <cmath>
#include <cstddef>

namespace retro::test {
namespace {

/// to[m, n] += factor·Σ_k a(i, k)·b(k, j), in `value` by values and in `magnitude` by magnitudes.
struct Operand {
  const Judged& values;
  int64_t row = 0;
  int64_t step = 0;
  size_t at(int64_t i, int64_t k) const { return static_cast<size_t>(i * row + k * step); }
};

void add_product(double factor, const Operand& a, const Operand& b, int64_t m, int64_t n, int64_t depth,
                 Judged& to) {
  to.value.resize(static_cast<size_t>(m * n));
  to.magnitude.resize(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double value = 0;
      double magnitude = 0;
      for (int64_t k = 0; k < depth; ++k) {
        value += a.values.value[a.at(i, k)] * b.values.value[b.at(k, j)];
        magnitude += a.values.magnitude[a.at(i, k)] * b.values.magnitude[b.at(k, j)];
      }
      to.value[static_cast<size_t>(i * n + j)] += factor * value;
      to.magnitude[static_cast<size_t>(i * n + j)] += std::abs(factor) * magnitude;
    }
  }
}

Judged judged(const std::vector<double>& values) {
  Judged result = {values, values};
  for (double& v : result.magnitude) v = std::abs(v);
  return result;
}

}  // namespace

LinearOutput linear_ref(const LinearInput& input) {
  const Judged x = judged(input.x);
  const Judged w = judged(input.w);
  const Judged a = judged(input.a);
  const Judged bt = judged(input.bt);
  LinearOutput output;
  add_product(1, {x, input.in, 1}, {w, 1, input.in}, input.rows, input.out, input.in, output.y);
  add_product(input.scale, {x, input.in, 1}, {a, 1, input.in}, input.rows, input.rank, input.in, output.u);
  add_product(1, {output.u, input.rank, 1}, {bt, input.out, 1}, input.rows, input.out, input.rank, output.y);
  return output;
}

LinearGradients linear_back_ref(const LinearInput& input, const std::vector<double>& upstream) {
  const Judged x = judged(input.x);
  const Judged w = judged(input.w);
  const Judged a = judged(input.a);
  const Judged bt = judged(input.bt);
  const Judged dy = judged(upstream);
  const Judged u = linear_ref(input).u;
  LinearGradients g;
  add_product(input.scale, {dy, input.out, 1}, {bt, 1, input.out}, input.rows, input.rank, input.out, g.du);
  add_product(1, {dy, input.out, 1}, {w, input.in, 1}, input.rows, input.in, input.out, g.dx);
  add_product(1, {g.du, input.rank, 1}, {a, input.in, 1}, input.rows, input.in, input.rank, g.dx);
  add_product(1, {g.du, 1, input.rank}, {x, input.in, 1}, input.rank, input.in, input.rows, g.da);
  add_product(1, {u, 1, input.rank}, {dy, input.out, 1}, input.rank, input.out, input.rows, g.dbt);
  return g;
}

std::vector<float> chain_product(const ChainOperand& a, const ChainOperand& b, int64_t m, int64_t n,
                                 int64_t depth, std::vector<float> c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = c[static_cast<size_t>(i * n + j)];
      for (int64_t k = 0; k < depth; ++k) {
        sum = std::fma(a.data[i * a.row + k * a.step], b.data[k * b.row + j * b.step], sum);
      }
      c[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

}  // namespace retro::test
