#include "tests/reference/optimizer_ref.h"

#include <cmath>

namespace retro::test {

void adamw_ref(AdamWState& state, double gradient, const AdamWRates& rates, int64_t step) {
  const auto t = static_cast<double>(step);
  state.m = rates.beta1 * state.m + (1 - rates.beta1) * gradient;
  state.v = rates.beta2 * state.v + (1 - rates.beta2) * gradient * gradient;
  const double m_hat = state.m / (1 - std::pow(rates.beta1, t));
  const double v_hat = state.v / (1 - std::pow(rates.beta2, t));
  state.w -= rates.lr * (m_hat / (std::sqrt(v_hat) + rates.eps) + rates.weight_decay * state.w);
}

}  // namespace retro::test
