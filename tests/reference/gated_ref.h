// The activations of gated layers in double, as published, and their derivatives.
#pragma once

namespace retro::test {

/// x / (1 + e^-x) (Elfwing et al. 2018).
double silu_ref(double x);
double silu_slope_ref(double x);

/// ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) (Hendrycks and Gimpel 2016).
double gelu_tanh_ref(double x);
double gelu_tanh_slope_ref(double x);

}  // namespace retro::test
