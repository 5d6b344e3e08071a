// The optimizers' published updates in double.
#pragma once

#include <cstdint>
#include <vector>

namespace retro::test {

struct AdamWState {
  double w = 0;
  double m = 0;
  double v = 0;
};

struct AdamWRates {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
};

/// Algorithm 2 of Loshchilov and Hutter 2019 with the schedule in lr, step counted from 1; one parameter.
void adamw_ref(AdamWState& state, double gradient, const AdamWRates& rates, int64_t step);

/// A tensor's weights and moments.
struct TensorState {
  std::vector<double> w;
  std::vector<double> m;
  std::vector<double> v;  // of gefen: one a block

  explicit TensorState(const std::vector<float>& start)
      : w(start.begin(), start.end()), m(start.size()), v(start.size()) {}
};

/// The 256 numbers of the dynamic map (Dettmers et al. 2022), ascending.
std::vector<double> dynamic_map_ref(bool is_signed);

/// AdamW whose moments are rounded, after the step, to the dynamic maps in blocks of 256.
void adamw8_ref(TensorState& state, const std::vector<float>& gradient, const AdamWRates& rates,
                int64_t step);

/// Adam with one second moment a block; with `quantized`, m is rounded after the step to 127ths of its
/// block's largest magnitude.
void gefen_ref(TensorState& state, const std::vector<float>& gradient, const AdamWRates& rates, int64_t block,
               bool quantized, int64_t step);

struct MuonRates {
  double lr = 0;
  double momentum = 0;
  bool nesterov = true;
  int ns_steps = 5;
  double ns_epsilon = 0;
  double weight_decay = 0;
};

/// Muon of one weight [rows, cols]; state.m is the momentum.
void muon_ref(TensorState& state, const std::vector<float>& gradient, int64_t rows, int64_t cols,
              const MuonRates& rates);

}  // namespace retro::test
