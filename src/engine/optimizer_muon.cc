// Muon (Jordan et al. 2024): the momentum of a hidden 2-D weight, made nearly orthogonal by Newton-Schulz
// steps, is its update. What is no such weight has AdamW with a rate of its own.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/update_rule.h"

namespace retro::engine {

namespace {

// X ← a·X + (b·A + c·A²)·X with A = X·Xᵀ.
constexpr float kA = 3.4445F;
constexpr float kB = -4.7750F;
constexpr float kC = 2.0315F;

std::vector<Parameter> select(const std::vector<Parameter>& parameters, bool hidden) {
  std::vector<Parameter> chosen;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(chosen),
               [&](const Parameter& p) { return p.hidden == hidden; });
  return chosen;
}

/// Elements of the largest weight, and of the largest A.
struct Widest {
  int64_t weight = 0;
  int64_t gram = 0;

  explicit Widest(const std::vector<Parameter>& hidden) {
    for (const Parameter& p : hidden) {
      const int64_t side = std::min(p.rows, p.cols);
      weight = std::max(weight, p.size());
      gram = std::max(gram, side * side);
    }
  }
  int64_t elements() const { return 2 * (weight + gram); }
};

class Muon final : public UpdateRule {
 public:
  Muon(device::Device& device, const OptimizerOptions& options, const std::vector<Parameter>& parameters)
      : device_(device),
        options_(options),
        hidden_(select(parameters, true)),
        momentum_(static_cast<size_t>(elements(hidden_))),
        others_(device, options, select(parameters, false)) {
    const Widest widest(hidden_);
    x_.resize(static_cast<size_t>(widest.weight));
    product_.resize(x_.size());
    gram_.resize(static_cast<size_t>(widest.gram));
    square_.resize(gram_.size());
  }

  void update(const Update& update) override {
    int64_t at = 0;
    for (const Parameter& p : hidden_) {
      const auto momentum = part(momentum_, at, p.size());
      const auto gradient = part(update.gradient, p.offset, p.size());
      const auto weights = part(update.weights, p.offset, p.size());
      const auto x = part(x_, 0, p.size());
      device_.combine({momentum, momentum, gradient, options_.momentum, update.scale});
      if (options_.nesterov) {
        device_.combine({x, momentum, gradient, options_.momentum, update.scale});
      } else {
        device_.combine({x, momentum, momentum, 1, 0});
      }
      orthogonalize(p, x);
      const double stretch =
          std::sqrt(std::max(1.0, static_cast<double>(p.rows) / static_cast<double>(p.cols)));
      const double keep = 1 - update.lr * static_cast<double>(options_.weight_decay);
      device_.combine(
          {weights, weights, x, static_cast<float>(keep), static_cast<float>(-update.lr * stretch)});
      at += p.size();
    }
    others_.update(update, options_.fallback_lr * (update.lr / options_.lr));
  }

  StateBuffers state() override {
    StateBuffers state;
    if (!momentum_.empty()) state.emplace_back("muon.momentum", momentum_);
    others_.append_state("muon.fallback", state);
    return state;
  }

 private:
  /// x becomes the Newton-Schulz iterate of x / (‖x‖ + ε). The side of A is the smaller one of x.
  void orthogonalize(const Parameter& p, std::span<float> x) {
    const double norm = std::sqrt(device_.sum_of_squares(x));
    device_.combine({x, x, x, static_cast<float>(1 / (norm + static_cast<double>(options_.ns_epsilon))), 0});
    const bool tall = p.rows > p.cols;
    const int64_t side = std::min(p.rows, p.cols);
    const auto gram = part(gram_, 0, side * side);
    const auto square = part(square_, 0, side * side);
    const auto product = part(product_, 0, p.size());
    const device::Matrix rows_of_x = matrix(x, p.cols);
    for (int32_t i = 0; i < options_.ns_steps; ++i) {
      if (tall) {
        std::fill(gram.begin(), gram.end(), 0.0F);
        run(device::WeightGradArgs{rows_of_x, rows_of_x, gram.data()}, p.rows);
      } else {
        run(device::LinearArgs{rows_of_x, weight(x, p.rows, p.cols), matrix(gram, side), {}, {}}, side);
      }
      // A is symmetric: A·Aᵀ is A², and for a tall x the product stands at its right.
      run(device::LinearArgs{matrix(gram, side), weight(gram, side, side), matrix(square, side), {}, {}},
          side);
      device_.combine({gram, gram, square, kB, kC});
      if (tall) {
        run(device::LinearArgs{rows_of_x, weight(gram, side, side), matrix(product, p.cols), {}, {}}, p.rows);
      } else {
        device::LinearBackArgs times;
        times.dy = matrix(gram, side);
        times.w = weight(x, p.rows, p.cols);
        times.dx = matrix(product, p.cols);
        run(times, side);
      }
      device_.combine({x, x, product, kA, 1});
    }
  }

  static device::Matrix matrix(std::span<float> values, int64_t cols) {
    return {values.data(), cols, cols, tensor::DType::F32};
  }
  static device::Weight weight(std::span<const float> values, int64_t rows, int64_t cols) {
    return {values.data(), rows, cols, tensor::DType::F32};
  }
  void run(const device::OpArgs& op, int64_t rows) {
    device::PassArgs pass;
    pass.rows = static_cast<int32_t>(rows);
    device_.run(op, pass);
  }

  device::Device& device_;
  OptimizerOptions options_;
  std::vector<Parameter> hidden_;
  std::vector<float> momentum_;
  AdamWMoments others_;
  std::vector<float> x_;
  std::vector<float> product_;
  std::vector<float> gram_;
  std::vector<float> square_;
};

}  // namespace

const UpdateRow kMuon = {
    OptimizerKind::muon,
    [](const OptimizerOptions&, const std::vector<Parameter>& parameters) {
      const std::vector<Parameter> hidden = select(parameters, true);
      constexpr int64_t kFloat = sizeof(float);
      return OptimizerBytes{elements(hidden) * kFloat + AdamWMoments::bytes(select(parameters, false)),
                            Widest(hidden).elements() * kFloat};
    },
    [](device::Device& device, const OptimizerOptions& options, const std::vector<Parameter>& parameters)
        -> std::unique_ptr<UpdateRule> { return std::make_unique<Muon>(device, options, parameters); }};

}  // namespace retro::engine
