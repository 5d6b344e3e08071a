// Plain gradient descent, without a state.
#include "engine/update_rule.h"

namespace retro::engine {

namespace {

class Sgd final : public UpdateRule {
 public:
  Sgd(device::Device& device, float weight_decay) : device_(device), weight_decay_(weight_decay) {}

  void update(const Update& update) override {
    device_.sgd(
        {update.weights, update.gradient, static_cast<float>(update.lr), weight_decay_, update.scale});
  }

  StateBuffers state() override { return {}; }

 private:
  device::Device& device_;
  float weight_decay_;
};

}  // namespace

const UpdateRow kSgd = {
    OptimizerKind::sgd,
    [](const OptimizerOptions&, const std::vector<Parameter>&) { return OptimizerBytes{}; },
    [](device::Device& device, const OptimizerOptions& options, const std::vector<Parameter>&)
        -> std::unique_ptr<UpdateRule> { return std::make_unique<Sgd>(device, options.weight_decay); }};

}  // namespace retro::engine
