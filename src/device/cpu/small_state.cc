// The optimizers with a small state: AdamW with moments of 8 bits, and Adam with a second moment per block.
// A block is one worker's, and its numbers are made in their order, so that bits do not depend on the
// threads.
#include <algorithm>
#include <array>
#include <cmath>

#include "device/cpu/adamw_step.h"
#include "device/cpu/dynamic_map.h"
#include "device/cpu/kernels.h"

namespace retro::device::cpu {

namespace {

const DynamicMap& signed_map() {
  static const DynamicMap map(true);
  return map;
}

const DynamicMap& unsigned_map() {
  static const DynamicMap map(false);
  return map;
}

/// The code of v / scale where v > 0 must not become 0, which would make the next step far too long.
uint8_t positive_code(const DynamicMap& map, float v, float scale) {
  if (v == 0) return 0;
  return std::max<uint8_t>(map.nearest(v / scale), 1);
}

void adamw8_block(const AdamW8Args& args, const AdamWStep& step, size_t block, const DynamicMap& map_m,
                  const DynamicMap& map_v) {
  std::array<float, AdamW8Args::kBlock> m{};
  std::array<float, AdamW8Args::kBlock> v{};
  const size_t begin = block * m.size();
  const size_t count = std::min(m.size(), args.weights.size() - begin);
  float* const weights = args.weights.data() + begin;
  const float* const gradients = args.gradients.data() + begin;
  uint8_t* const m_codes = args.m.data() + begin;
  uint8_t* const v_codes = args.v.data() + begin;
  float& m_scale = args.m_scale[block];
  float& v_scale = args.v_scale[block];
  float m_most = 0;
  float v_most = 0;
  for (size_t i = 0; i < count; ++i) {
    const float g = gradients[i] * step.gradient_scale;
    const float old_m = map_m[m_codes[i]] * m_scale;
    m[i] = old_m + (1 - step.beta1) * (g - old_m);
    v[i] = step.beta2 * (map_v[v_codes[i]] * v_scale) + (1 - step.beta2) * g * g;
    m_most = std::max(m_most, std::abs(m[i]));
    v_most = std::max(v_most, v[i]);
    const float root = std::sqrt(v[i]) * step.inverse_root + step.eps;
    weights[i] = weights[i] * step.keep - step.step_size * m[i] / root;
  }
  m_scale = m_most;
  v_scale = v_most;
  for (size_t i = 0; i < count; ++i) {
    m_codes[i] = map_m.nearest(m_most == 0 ? 0 : m[i] / m_most);
    v_codes[i] = positive_code(map_v, v[i], v_most);
  }
}

double mean_square(const float* values, size_t count, float scale) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const double g = values[i] * scale;
    sum += g * g;
  }
  return sum / static_cast<double>(count);
}

/// m of 8 bits to and from its f32 numbers.
constexpr float kLevels = 127;
constexpr int kZeroCode = 128;

float uniform_value(uint8_t code, float scale) {
  return static_cast<float>(static_cast<int>(code) - kZeroCode) / kLevels * scale;
}

uint8_t uniform_code(float m, float scale) {
  if (scale == 0) return kZeroCode;
  return static_cast<uint8_t>(kZeroCode + static_cast<int>(std::nearbyint(m / scale * kLevels)));
}

void gefen_block(const GefenArgs& args, const AdamWStep& step, size_t block) {
  const size_t begin = block * static_cast<size_t>(args.block);
  const size_t count = std::min(static_cast<size_t>(args.block), args.weights.size() - begin);
  float* const weights = args.weights.data() + begin;
  const float* const gradients = args.gradients.data() + begin;
  float& v = args.v[block];
  v = static_cast<float>(static_cast<double>(step.beta2) * v +
                         (1 - static_cast<double>(step.beta2)) *
                             mean_square(gradients, count, step.gradient_scale));
  const float rate = step.step_size / (std::sqrt(v) * step.inverse_root + step.eps);
  const bool coded = args.m.empty();
  uint8_t* const codes = coded ? args.codes.data() + begin : nullptr;
  const float scale = coded ? args.scale[block] : 0;
  const auto moment = [&](size_t i) {
    const float old = coded ? uniform_value(codes[i], scale) : args.m[begin + i];
    return old + (1 - step.beta1) * (gradients[i] * step.gradient_scale - old);
  };
  float most = 0;
  for (size_t i = 0; i < count; ++i) {
    const float m = moment(i);
    most = std::max(most, std::abs(m));
    weights[i] = weights[i] * step.keep - rate * m;
    if (!coded) args.m[begin + i] = m;
  }
  if (!coded) return;
  for (size_t i = 0; i < count; ++i) codes[i] = uniform_code(moment(i), most);
  args.scale[block] = most;
}

}  // namespace

void adamw8(const AdamW8Args& args, ThreadPool& pool) noexcept {
  const AdamWStep step = adamw_step(args);
  const DynamicMap& map_m = signed_map();
  const DynamicMap& map_v = unsigned_map();
  pool.ranges(static_cast<int64_t>(args.m_scale.size()), 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      adamw8_block(args, step, static_cast<size_t>(block), map_m, map_v);
    }
  });
}

void gefen(const GefenArgs& args, ThreadPool& pool) noexcept {
  const AdamWStep step = adamw_step(args);
  pool.ranges(static_cast<int64_t>(args.v.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) gefen_block(args, step, static_cast<size_t>(block));
  });
}

}  // namespace retro::device::cpu
