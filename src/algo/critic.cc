#include "algo/critic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/det_math.h"
#include "base/error.h"
#include "tensor/half.h"

namespace retro::algo {

FeatureRows::FeatureRows(int64_t width, FeatureType type) : width_(width), type_(type) {
  RETRO_CHECK(width > 0);
}

void FeatureRows::append(std::span<const float> rows) {
  RETRO_CHECK(rows.size() % static_cast<size_t>(width_) == 0);
  if (type_ == FeatureType::f32) {
    full_.insert(full_.end(), rows.begin(), rows.end());
    return;
  }
  const bool f16 = type_ == FeatureType::f16;
  for (const float value : rows)
    half_.push_back(f16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value));
}

void FeatureRows::clear() {
  full_.clear();
  half_.clear();
}

int64_t FeatureRows::rows() const {
  return static_cast<int64_t>(full_.size() + half_.size()) / width_;
}

int64_t FeatureRows::bytes() const {
  return static_cast<int64_t>(full_.size() * sizeof(float) + half_.size() * sizeof(uint16_t));
}

void FeatureRows::read(int64_t row, std::span<float> out) const {
  RETRO_CHECK(row >= 0 && row < rows() && out.size() == static_cast<size_t>(width_));
  const auto first = static_cast<std::ptrdiff_t>(row * width_);
  if (type_ == FeatureType::f32) {
    std::copy_n(full_.begin() + first, width_, out.begin());
    return;
  }
  const bool f16 = type_ == FeatureType::f16;
  std::transform(half_.begin() + first, half_.begin() + first + width_, out.begin(),
                 [f16](uint16_t bits) { return f16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits); });
}

Critic::Critic(int64_t width, double learning_rate)
    : Critic(width, learning_rate,
             CriticState{std::vector<double>(static_cast<size_t>(width) + 1),
                         std::vector<double>(static_cast<size_t>(width) + 1),
                         std::vector<double>(static_cast<size_t>(width) + 1), 0}) {}

Critic::Critic(int64_t width, double learning_rate, CriticState state)
    : width_(width), learning_rate_(learning_rate), state_(std::move(state)) {
  for (const auto* part : {&state_.weights, &state_.first_moments, &state_.second_moments}) {
    if (part->size() != static_cast<size_t>(width) + 1) {
      fail(ErrorKind::data, "the critic's state is for hidden rows of {} numbers, the model's have {}",
           static_cast<int64_t>(part->size()) - 1, width);
    }
  }
}

double Critic::value(std::span<const float> row) const {
  double sum = state_.weights.back();
  for (size_t i = 0; i < row.size(); ++i) sum += state_.weights[i] * static_cast<double>(row[i]);
  return sum;
}

std::vector<double> Critic::values(const FeatureRows& features) const {
  RETRO_CHECK(features.width() == width_);
  std::vector<double> values(static_cast<size_t>(features.rows()));
  std::vector<float> row(static_cast<size_t>(width_));
  for (size_t r = 0; r < values.size(); ++r) {
    features.read(static_cast<int64_t>(r), row);
    values[r] = value(row);
  }
  return values;
}

double Critic::fit(const FeatureRows& features, std::span<const double> returns, int64_t epochs) {
  const int64_t rows = features.rows();
  RETRO_CHECK(features.width() == width_ && static_cast<int64_t>(returns.size()) == rows);
  if (rows == 0) return 0;
  std::vector<float> row(static_cast<size_t>(width_));
  std::vector<double> gradient(state_.weights.size());
  double first_loss = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::fill(gradient.begin(), gradient.end(), 0.0);
    double squares = 0;
    for (int64_t r = 0; r < rows; ++r) {
      features.read(r, row);
      const double error = value(row) - returns[static_cast<size_t>(r)];
      squares += error * error;
      const double scaled = error / static_cast<double>(rows);
      for (size_t i = 0; i < row.size(); ++i) gradient[i] += scaled * static_cast<double>(row[i]);
      gradient.back() += scaled;
    }
    if (epoch == 0) first_loss = 0.5 * squares / static_cast<double>(rows);
    adam_step(gradient);
  }
  return first_loss;
}

void Critic::adam_step(std::span<const double> gradient) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
  ++state_.steps;
  const auto steps = static_cast<double>(state_.steps);
  const double correction1 = 1 - det_pow(kBeta1, steps);
  const double correction2 = 1 - det_pow(kBeta2, steps);
  for (size_t i = 0; i < gradient.size(); ++i) {
    double& m = state_.first_moments[i];
    double& v = state_.second_moments[i];
    m = kBeta1 * m + (1 - kBeta1) * gradient[i];
    v = kBeta2 * v + (1 - kBeta2) * gradient[i] * gradient[i];
    state_.weights[i] -= learning_rate_ * (m / correction1) / (std::sqrt(v / correction2) + kEpsilon);
  }
}

}  // namespace retro::algo
