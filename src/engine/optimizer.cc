#include "engine/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "engine/update_rule.h"

namespace retro::engine {

namespace {

const UpdateRow& row_of(OptimizerKind kind) {
  constexpr std::array<const UpdateRow*, 5> kRows = {&kAdamW, &kSgd, &kMuon, &kGefen, &kAdamW8bit};
  const auto at =
      std::find_if(kRows.begin(), kRows.end(), [&](const UpdateRow* row) { return row->kind == kind; });
  RETRO_CHECK(at != kRows.end());
  return **at;
}

}  // namespace

int64_t elements(const std::vector<Parameter>& parameters) {
  return std::accumulate(parameters.begin(), parameters.end(), int64_t{0},
                         [](int64_t sum, const Parameter& p) { return sum + p.size(); });
}

int64_t blocks(const std::vector<Parameter>& parameters, int64_t block) {
  return std::accumulate(
      parameters.begin(), parameters.end(), int64_t{0},
      [&](int64_t sum, const Parameter& p) { return sum + (p.size() + block - 1) / block; });
}

OptimizerBytes optimizer_bytes(const OptimizerOptions& options, const std::vector<Parameter>& parameters) {
  return row_of(options.kind).bytes(options, parameters);
}

Optimizer::Optimizer(device::Device& device, const OptimizerOptions& options,
                     std::vector<Parameter> parameters)
    : device_(device),
      options_(options),
      parameters_(std::move(parameters)),
      rule_(row_of(options.kind).make(device, options, parameters_)) {}

Optimizer::~Optimizer() = default;

double Optimizer::step(std::span<float> weights, std::span<const float> gradient, double lr) {
  double sum = 0;
  for (const Parameter& parameter : parameters_) {
    const double squares = device_.sum_of_squares(part(gradient, parameter.offset, parameter.size()));
    if (!std::isfinite(squares)) {
      fail(ErrorKind::data,
           "the gradient of {} is not finite; lower training.lr, or set training.max_grad_norm = 1.0; where "
           "training.checkpoint_dtype is \"f16\", take \"bf16\" (f16 ends at 65504, which gemma3 exceeds)",
           parameter.name);
    }
    sum += squares;
  }
  const double norm = std::sqrt(sum);
  const bool clip = options_.max_grad_norm > 0 && norm > options_.max_grad_norm;
  const auto scale = static_cast<float>(clip ? options_.max_grad_norm / norm : 1.0);
  rule_->update({weights, gradient, lr, scale, ++steps_});
  return norm;
}

std::vector<std::pair<std::string, std::span<const float>>> Optimizer::state() const {
  std::vector<std::pair<std::string, std::span<const float>>> buffers;
  for (const auto& [name, values] : rule_->state()) buffers.emplace_back(name, values);
  return buffers;
}

void Optimizer::restore(int64_t steps, std::span<const std::pair<std::string, std::vector<float>>> state) {
  const StateBuffers buffers = rule_->state();
  const auto find = [&](const std::string& name) {
    return std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.first == name; });
  };
  for (const auto& [name, values] : buffers) {
    const auto at = find(name);
    if (at == state.end() || at->second.size() != values.size()) {
      fail(ErrorKind::data, "the checkpoint's '{}' does not fit what this run trains", name);
    }
  }
  for (const auto& [name, values] : buffers) {
    const auto& saved = find(name)->second;
    std::copy(saved.begin(), saved.end(), values.begin());
  }
  steps_ = steps;
}

}  // namespace retro::engine
