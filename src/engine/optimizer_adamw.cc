// AdamW (Loshchilov and Hutter 2019) over the whole buffer at once, and the moments that others leave to it.
#include "engine/update_rule.h"

namespace retro::engine {

AdamWMoments::AdamWMoments(device::Device& device, const OptimizerOptions& options,
                           std::vector<Parameter> parameters)
    : device_(device), options_(options), parameters_(std::move(parameters)) {
  const auto size = static_cast<size_t>(elements(parameters_));
  m_.assign(size, 0.0F);
  v_.assign(size, 0.0F);
}

int64_t AdamWMoments::bytes(const std::vector<Parameter>& parameters) {
  return 2 * elements(parameters) * int64_t{sizeof(float)};
}

void AdamWMoments::update(const Update& update, double lr) {
  int64_t at = 0;
  for (size_t i = 0; i < parameters_.size();) {
    // Parameters that lie side by side are one run.
    const int64_t offset = parameters_[i].offset;
    int64_t size = 0;
    for (; i < parameters_.size() && parameters_[i].offset == offset + size; ++i)
      size += parameters_[i].size();
    device_.adamw({part(update.weights, offset, size), part(update.gradient, offset, size),
                   part(m_, at, size), part(v_, at, size), static_cast<float>(lr), options_.beta1,
                   options_.beta2, options_.eps, options_.weight_decay, update.scale, update.step});
    at += size;
  }
}

void AdamWMoments::append_state(const std::string& prefix, StateBuffers& state) {
  if (m_.empty()) return;
  state.emplace_back(prefix + ".m", m_);
  state.emplace_back(prefix + ".v", v_);
}

namespace {

class AdamW final : public UpdateRule {
 public:
  AdamW(device::Device& device, const OptimizerOptions& options, const std::vector<Parameter>& parameters)
      : moments_(device, options, parameters) {}

  void update(const Update& update) override { moments_.update(update, update.lr); }

  StateBuffers state() override {
    StateBuffers state;
    moments_.append_state("adamw", state);
    return state;
  }

 private:
  AdamWMoments moments_;
};

}  // namespace

const UpdateRow kAdamW = {OptimizerKind::adamw,
                          [](const OptimizerOptions&, const std::vector<Parameter>& parameters) {
                            return OptimizerBytes{AdamWMoments::bytes(parameters), 0};
                          },
                          [](device::Device& device, const OptimizerOptions& options,
                             const std::vector<Parameter>& parameters) -> std::unique_ptr<UpdateRule> {
                            return std::make_unique<AdamW>(device, options, parameters);
                          }};

}  // namespace retro::engine
