// PPO's critic: a linear probe on the final hidden state, fitted by full-batch Adam.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace retro::algo {

enum class FeatureType { f32, f16, bf16 };

/// Final hidden rows of a batch's sampled tokens, as stored between generation and the critic's fit.
class FeatureRows {
 public:
  FeatureRows(int64_t width, FeatureType type);

  /// `rows` is [n, width].
  void append(std::span<const float> rows);
  void clear();

  int64_t width() const { return width_; }
  int64_t rows() const;
  int64_t bytes() const;
  /// Row `row` as f32 into [width].
  void read(int64_t row, std::span<float> out) const;

 private:
  int64_t width_;
  FeatureType type_;
  std::vector<float> full_;     // of f32
  std::vector<uint16_t> half_;  // of f16 and bf16
};

/// What a checkpoint holds of the critic. The last of each is the bias.
struct CriticState {
  std::vector<double> weights, first_moments, second_moments;  // [width + 1]
  int64_t steps = 0;
};

/// V(h) = w·h + b, zero at first.
class Critic {
 public:
  /// Adam's rate; its other constants are 0.9, 0.999 and 1e-8.
  Critic(int64_t width, double learning_rate);
  /// Goes on from a checkpoint; throws Error(data) when its state is of another width.
  Critic(int64_t width, double learning_rate, CriticState state);

  /// [rows].
  std::vector<double> values(const FeatureRows& features) const;

  /// `epochs` steps of Adam (Kingma and Ba 2015) on ½·mean((V - returns)²), each over all rows. Returns the
  /// loss before the first. Rows are summed in their order.
  double fit(const FeatureRows& features, std::span<const double> returns, int64_t epochs);

  const CriticState& state() const { return state_; }

 private:
  double value(std::span<const float> row) const;
  void adam_step(std::span<const double> gradient);

  int64_t width_;
  double learning_rate_;
  CriticState state_;
};

}  // namespace retro::algo
