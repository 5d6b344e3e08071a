#include "tests/reference/optimizer_ref.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace retro::test {

namespace {

/// The update of one weight of Adam once its moments are known.
void adam_update(double& w, double m, double v, const AdamWRates& rates, int64_t step) {
  const auto t = static_cast<double>(step);
  const double m_hat = m / (1 - std::pow(rates.beta1, t));
  const double v_hat = v / (1 - std::pow(rates.beta2, t));
  w -= rates.lr * (m_hat / (std::sqrt(v_hat) + rates.eps) + rates.weight_decay * w);
}

/// Calls work(begin, end) for each block.
void each_block(size_t size, size_t block, const std::function<void(size_t, size_t)>& work) {
  for (size_t begin = 0; begin < size; begin += block) work(begin, std::min(size, begin + block));
}

double largest(const std::vector<double>& values, size_t begin, size_t end) {
  double most = 0;
  for (size_t i = begin; i < end; ++i) most = std::max(most, std::abs(values[i]));
  return most;
}

double nearest(const std::vector<double>& map, double x) {
  return *std::min_element(map.begin(), map.end(),
                           [&](double a, double b) { return std::abs(a - x) < std::abs(b - x); });
}

using Rows = std::vector<std::vector<double>>;

Rows product(const Rows& a, const Rows& b) {
  Rows c(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Rows transposed(const Rows& a) {
  Rows t(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  }
  return t;
}

Rows combined(const Rows& a, double alpha, const Rows& b, double beta) {
  Rows c = a;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) c[i][j] = alpha * a[i][j] + beta * b[i][j];
  }
  return c;
}

}  // namespace

void adamw_ref(AdamWState& state, double gradient, const AdamWRates& rates, int64_t step) {
  state.m = rates.beta1 * state.m + (1 - rates.beta1) * gradient;
  state.v = rates.beta2 * state.v + (1 - rates.beta2) * gradient * gradient;
  adam_update(state.w, state.m, state.v, rates, step);
}

std::vector<double> dynamic_map_ref(bool is_signed) {
  std::vector<double> map = {0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const double unit = std::pow(10.0, decade - 6);
    const int parts = is_signed ? 1 << decade : 2 << decade;
    for (int part = 0; part < parts; ++part) {
      const double low = 0.1 + 0.9 * part / parts;
      const double high = 0.1 + 0.9 * (part + 1) / parts;
      map.push_back(unit * (low + high) / 2);
      if (is_signed) map.push_back(-unit * (low + high) / 2);
    }
  }
  std::sort(map.begin(), map.end());
  return map;
}

void adamw8_ref(TensorState& state, const std::vector<float>& gradient, const AdamWRates& rates,
                int64_t step) {
  static const std::vector<double> map_m = dynamic_map_ref(true);
  static const std::vector<double> map_v = dynamic_map_ref(false);
  each_block(gradient.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      AdamWState one{state.w[i], state.m[i], state.v[i]};
      adamw_ref(one, gradient[i], rates, step);
      state.w[i] = one.w;
      state.m[i] = one.m;
      state.v[i] = one.v;
    }
    const double scale_m = largest(state.m, begin, end);
    const double scale_v = largest(state.v, begin, end);
    for (size_t i = begin; i < end; ++i) {
      if (scale_m > 0) state.m[i] = scale_m * nearest(map_m, state.m[i] / scale_m);
      if (state.v[i] > 0) state.v[i] = scale_v * std::max(map_v[1], nearest(map_v, state.v[i] / scale_v));
    }
  });
}

void gefen_ref(TensorState& state, const std::vector<float>& gradient, const AdamWRates& rates, int64_t block,
               bool quantized, int64_t step) {
  each_block(gradient.size(), static_cast<size_t>(block), [&](size_t begin, size_t end) {
    double squares = 0;
    for (size_t i = begin; i < end; ++i) squares += static_cast<double>(gradient[i]) * gradient[i];
    double& v = state.v[begin / static_cast<size_t>(block)];
    v = rates.beta2 * v + (1 - rates.beta2) * squares / static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) {
      state.m[i] = rates.beta1 * state.m[i] + (1 - rates.beta1) * gradient[i];
      adam_update(state.w[i], state.m[i], v, rates, step);
    }
    const double scale = largest(state.m, begin, end);
    for (size_t i = begin; quantized && scale > 0 && i < end; ++i) {
      state.m[i] = std::nearbyint(state.m[i] / scale * 127) / 127 * scale;
    }
  });
}

void muon_ref(TensorState& state, const std::vector<float>& gradient, int64_t rows, int64_t cols,
              const MuonRates& rates) {
  const auto width = static_cast<size_t>(cols);
  Rows x(static_cast<size_t>(rows), std::vector<double>(width));
  double squares = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    state.m[i] = rates.momentum * state.m[i] + gradient[i];
    double& u = x[i / width][i % width];
    u = rates.nesterov ? gradient[i] + rates.momentum * state.m[i] : state.m[i];
    squares += u * u;
  }
  x = combined(x, 1 / (std::sqrt(squares) + rates.ns_epsilon), x, 0);
  if (rows > cols) x = transposed(x);
  for (int i = 0; i < rates.ns_steps; ++i) {
    const Rows a = product(x, transposed(x));
    x = combined(x, 3.4445, product(combined(a, -4.7750, product(a, a), 2.0315), x), 1);
  }
  if (rows > cols) x = transposed(x);
  const double stretch = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(cols)));
  for (size_t i = 0; i < gradient.size(); ++i) {
    state.w[i] -= rates.lr * (stretch * x[i / width][i % width] + rates.weight_decay * state.w[i]);
  }
}

}  // namespace retro::test
