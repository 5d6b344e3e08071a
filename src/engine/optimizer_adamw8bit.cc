// AdamW with moments of 8 bits in blocks of 256 (Dettmers et al. 2022); each parameter starts a new block.
#include "engine/update_rule.h"

namespace retro::engine {

namespace {

constexpr int64_t kBlock = device::AdamW8Args::kBlock;

class AdamW8bit final : public UpdateRule {
 public:
  AdamW8bit(device::Device& device, const OptimizerOptions& options, std::vector<Parameter> parameters)
      : device_(device),
        options_(options),
        parameters_(std::move(parameters)),
        m_(elements(parameters_)),
        v_(elements(parameters_)),
        m_scale_(static_cast<size_t>(blocks(parameters_, kBlock))),
        v_scale_(m_scale_.size()) {}

  void update(const Update& update) override {
    int64_t block = 0;
    for (const Parameter& p : parameters_) {
      const int64_t count = blocks({p}, kBlock);
      device_.adamw8({part(update.weights, p.offset, p.size()), part(update.gradient, p.offset, p.size()),
                      m_.part(p.offset, p.size()), v_.part(p.offset, p.size()), part(m_scale_, block, count),
                      part(v_scale_, block, count), static_cast<float>(update.lr), options_.beta1,
                      options_.beta2, options_.eps, options_.weight_decay, update.scale, update.step});
      block += count;
    }
  }

  StateBuffers state() override {
    return {{"adamw8bit.m", m_.buffer()},
            {"adamw8bit.v", v_.buffer()},
            {"adamw8bit.m_scale", m_scale_},
            {"adamw8bit.v_scale", v_scale_}};
  }

 private:
  device::Device& device_;
  OptimizerOptions options_;
  std::vector<Parameter> parameters_;
  Codes m_;
  Codes v_;
  std::vector<float> m_scale_;
  std::vector<float> v_scale_;
};

}  // namespace

const UpdateRow kAdamW8bit = {OptimizerKind::adamw8bit,
                              [](const OptimizerOptions&, const std::vector<Parameter>& parameters) {
                                const int64_t words =
                                    Codes::words(elements(parameters)) + blocks(parameters, kBlock);
                                return OptimizerBytes{2 * words * int64_t{sizeof(float)}, 0};
                              },
                              [](device::Device& device, const OptimizerOptions& options,
                                 const std::vector<Parameter>& parameters) -> std::unique_ptr<UpdateRule> {
                                return std::make_unique<AdamW8bit>(device, options, parameters);
                              }};

}  // namespace retro::engine
