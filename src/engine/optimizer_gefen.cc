// gefen: Adam with one second moment per block, its first moment f32 or of 8 bits. Parameters of fewer than
// min_numel elements have AdamW's moments.
#include <algorithm>
#include <iterator>

#include "engine/update_rule.h"

namespace retro::engine {

namespace {

std::vector<Parameter> select(const OptimizerOptions& options, const std::vector<Parameter>& parameters,
                              bool large) {
  std::vector<Parameter> chosen;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(chosen),
               [&](const Parameter& p) { return (p.size() >= options.min_numel) == large; });
  return chosen;
}

class Gefen final : public UpdateRule {
 public:
  Gefen(device::Device& device, const OptimizerOptions& options, const std::vector<Parameter>& parameters)
      : device_(device),
        options_(options),
        large_(select(options, parameters, true)),
        m_(options.quantized_m ? 0 : static_cast<size_t>(elements(large_))),
        codes_(options.quantized_m ? elements(large_) : 0),
        v_(static_cast<size_t>(blocks(large_, options.block_size))),
        scale_(options.quantized_m ? v_.size() : 0),
        small_(device, options, select(options, parameters, false)) {}

  void update(const Update& update) override {
    int64_t at = 0;
    int64_t block = 0;
    for (const Parameter& p : large_) {
      const int64_t count = blocks({p}, options_.block_size);
      device::GefenArgs args;
      args.weights = part(update.weights, p.offset, p.size());
      args.gradients = part(update.gradient, p.offset, p.size());
      if (options_.quantized_m) {
        args.codes = codes_.part(at, p.size());
        args.scale = part(scale_, block, count);
      } else {
        args.m = part(m_, at, p.size());
      }
      args.v = part(v_, block, count);
      args.block = options_.block_size;
      args.lr = static_cast<float>(update.lr);
      args.beta1 = options_.beta1;
      args.beta2 = options_.beta2;
      args.eps = options_.eps;
      args.weight_decay = options_.weight_decay;
      args.gradient_scale = update.scale;
      args.step = update.step;
      device_.gefen(args);
      at += p.size();
      block += count;
    }
    small_.update(update, update.lr);
  }

  StateBuffers state() override {
    StateBuffers state;
    if (!large_.empty()) {
      if (options_.quantized_m) {
        state.emplace_back("gefen.m_codes", codes_.buffer());
        state.emplace_back("gefen.m_scale", scale_);
      } else {
        state.emplace_back("gefen.m", m_);
      }
      state.emplace_back("gefen.v", v_);
    }
    small_.append_state("gefen.small", state);
    return state;
  }

 private:
  device::Device& device_;
  OptimizerOptions options_;
  std::vector<Parameter> large_;
  std::vector<float> m_;
  Codes codes_;
  std::vector<float> v_;
  std::vector<float> scale_;
  AdamWMoments small_;
};

}  // namespace

const UpdateRow kGefen = {
    OptimizerKind::gefen,
    [](const OptimizerOptions& options, const std::vector<Parameter>& parameters) {
      const std::vector<Parameter> large = select(options, parameters, true);
      const int64_t count = blocks(large, options.block_size);
      const int64_t words =
          options.quantized_m ? Codes::words(elements(large)) + 2 * count : elements(large) + count;
      return OptimizerBytes{
          words * int64_t{sizeof(float)} + AdamWMoments::bytes(select(options, parameters, false)), 0};
    },
    [](device::Device& device, const OptimizerOptions& options, const std::vector<Parameter>& parameters)
        -> std::unique_ptr<UpdateRule> { return std::make_unique<Gefen>(device, options, parameters); }};

}  // namespace retro::engine
