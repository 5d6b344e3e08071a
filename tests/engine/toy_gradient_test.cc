// The LoRA gradient of toy models: the same however a set is cut into passes and whatever is kept between
// them, and the slope of the loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <numeric>
#include <ostream>

#include "base/random.h"
#include "engine/engine.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_models.h"

namespace retro::test {
namespace {

constexpr int64_t kLayers = 4;

ToySpec toy(const std::string& name) {
  ToySpec spec = toy_model(name);
  spec.layers = kLayers;
  if (spec.sliding_window > 0) spec.sliding_window = 7;
  return spec;
}

/// Tokens at random; those from `first_target` on are asked for, each with d loss / d logprob = −1.
struct Text {
  std::vector<int32_t> tokens, targets;
  std::vector<float> logprobs, dlogprobs;

  Text(int32_t length, int32_t first_target, uint64_t seed) {
    const RandomStream stream(seed, "tokens");
    for (uint64_t i = 0; i < static_cast<uint64_t>(length); ++i)
      tokens.push_back(3 + static_cast<int32_t>(stream.below(i, 90)));
    targets.resize(static_cast<size_t>(length - first_target));
    std::iota(targets.begin(), targets.end(), first_target);
    logprobs.resize(targets.size());
    dlogprobs.assign(targets.size(), -1.0F);
  }
  engine::Sequence sequence() { return {tokens, targets, logprobs, dlogprobs}; }
};

struct Texts {
  std::vector<Text> texts = {Text(24, 1, 1), Text(17, 9, 2), Text(31, 3, 3)};
  static constexpr int32_t kRows = 23 + 16 + 30;
  static constexpr int32_t kLongest = 30;

  std::vector<engine::Sequence> sequences() {
    std::vector<engine::Sequence> result;
    for (Text& text : texts) result.push_back(text.sequence());
    return result;
  }
  double loss() const {
    double sum = 0;
    for (const Text& text : texts) sum -= std::accumulate(text.logprobs.begin(), text.logprobs.end(), 0.0);
    return sum;
  }
};

/// Both factors at random, so that each has a gradient.
model::Adapter random_adapter(const model::Model& model, const std::vector<std::string>& targets) {
  auto adapter = model::make_adapter(model::choose_targets(model, targets, 4, 8, tensor::DType::F32), 1);
  const RandomStream stream(1, "b");
  for (size_t i = 0; i < adapter.weights.size(); ++i) {
    if (adapter.weights[i] == 0) adapter.weights[i] = 0.1F * (stream.uniform(i) - 0.5F);
  }
  return adapter;
}

std::vector<float> gradient(device::Device& device, const model::Model& model, const model::Adapter& adapter,
                            engine::EngineOptions options, bool coupled) {
  Texts texts;
  options.set_rows = coupled ? Texts::kRows : Texts::kLongest;
  options.context = Texts::kLongest;
  options.head_chunk_rows = 5;
  engine::Engine engine(device, &adapter, engine::plan_engine(model, &adapter.layout, options));
  engine.clear_gradient();
  if (!coupled) {
    engine.accumulate(texts.sequences());
  } else {
    for (Text& text : texts.texts) std::fill(text.dlogprobs.begin(), text.dlogprobs.end(), NAN);
    engine.accumulate_coupled(texts.sequences(), [&] {
      for (Text& text : texts.texts) {
        for (const float logprob : text.logprobs) EXPECT_LT(logprob, 0);
        std::fill(text.dlogprobs.begin(), text.dlogprobs.end(), -1.0F);
      }
    });
  }
  return {engine.gradient().begin(), engine.gradient().end()};
}

double norm(const std::vector<float>& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

double relative_distance(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a) / norm(b);
}

struct Case {
  std::string name;
  std::vector<std::string> targets;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
  for (const std::string& target : c.targets) *out << ' ' << target;
}

class ToyGradient : public ::testing::TestWithParam<Case> {
 protected:
  ToyGradient() : device_(device::make_cpu_device(1)) {
    write_toy_model(folder_ / "toy.gguf", toy(GetParam().name));
    model_ = std::make_unique<model::Model>(folder_ / "toy.gguf");
    adapter_ = random_adapter(*model_, GetParam().targets);
  }
  support::TempFolder folder_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<model::Model> model_;
  model::Adapter adapter_;
};

TEST_P(ToyGradient, IsTheSameHoweverItIsCut) {
  engine::EngineOptions options;
  options.micro_batch = 300;
  const auto whole = gradient(*device_, *model_, adapter_, options, false);
  ASSERT_GT(norm(whole), 0.1);
  for (const int32_t micro_batch : {300, 64, 7, 1}) {
    for (const int32_t checkpoint_layers : {0, 1, 2, 3}) {
      for (const bool coupled : {false, true}) {
        options.micro_batch = micro_batch;
        options.checkpoint_layers = checkpoint_layers;
        EXPECT_LT(relative_distance(gradient(*device_, *model_, adapter_, options, coupled), whole), 1e-5)
            << "micro_batch " << micro_batch << " checkpoint_layers " << checkpoint_layers << " coupled "
            << coupled;
      }
    }
  }
}

// Along random ±1 directions, against D(h) = (L(w + h·d) − L(w − h·d)) / 2h, by (4·D(h) − D(2h)) / 3 without
// the h² of the third derivative. In a random direction a factor whose gradient is missing or wrong shows
// with its share of the norm, so that is what the tolerance is of; the difference itself is off by the
// rounding of f32 log-probabilities over h and h⁴ times the fifth derivative, together below a quarter of the
// tolerance.
TEST_P(ToyGradient, IsTheSlopeOfTheLoss) {
  engine::EngineOptions options;
  options.micro_batch = 300;
  options.kv_dtype = tensor::DType::F32;
  const auto slopes = gradient(*device_, *model_, adapter_, options, false);
  options.train = false;
  options.context = Texts::kLongest;
  for (uint64_t direction = 0; direction < 4; ++direction) {
    const RandomStream signs(direction, "direction");
    const auto sign = [&](size_t i) { return (signs.bits(i) & 1) != 0 ? 1.0F : -1.0F; };
    const auto loss_at = [&](float step) {
      model::Adapter moved = adapter_;
      for (size_t i = 0; i < moved.weights.size(); ++i) moved.weights[i] += step * sign(i);
      engine::Engine engine(*device_, &moved, engine::plan_engine(*model_, &moved.layout, options));
      Texts texts;
      engine.score(texts.sequences());
      return texts.loss();
    };
    const auto slope_at = [&](float step) {
      return (loss_at(step) - loss_at(-step)) / (2 * static_cast<double>(step));
    };
    constexpr float kStep = 0x1p-10F;
    double slope = 0;
    for (size_t i = 0; i < slopes.size(); ++i) slope += static_cast<double>(slopes[i] * sign(i));
    const double difference = (4 * slope_at(kStep) - slope_at(2 * kStep)) / 3;
    EXPECT_NEAR(difference, slope, 3e-3 * norm(slopes)) << "direction " << direction;
  }
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const ToyModel& model : toy_models()) {
    std::vector<std::vector<std::string>> targets = {{"q"}, {"k"}, {"v"}, {"k", "v"}};
    if (model.spec.architecture == "phi3") targets = {{"qkv"}, {"ffn_up"}};
    for (const char* more : {"ffn_down", "blk.1.*", "blk.3.*", "auto"}) targets.push_back({more});
    for (const auto& t : targets) result.push_back({model.name, t});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Toys, ToyGradient, ::testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param.name;
  for (const std::string& target : test.param.targets) {
    name += '_';
    for (const char c : target) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
    }
  }
  return name;
});

}  // namespace
}  // namespace retro::test
