// The K formats: for each group the scale (and minimum) that leaves the least weighted square error of some
// tried, then these as 6- or 8-bit numbers, then the quants anew with what the rounded scales decode to.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "tensor/block_encoders.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

/// Groups smaller than this are taken as zeros.
constexpr float kZeroGroup = 1e-15F;

/// To nearest, ties to even, of magnitudes up to 2^22: added to 1.5·2^23, the fraction's bits are the number.
/// What is beyond (the inverse of a subnormal) becomes some number all the same, the same one everywhere.
int nearest(float value) {
  const auto bits = std::bit_cast<int32_t>(value + 12582912.0F);
  return (bits & 0x007fffff) - 0x00400000;
}

int nearest(float value, int least, int most) {
  return std::max(least, std::min(most, nearest(value)));
}

struct LineFit {
  float scale;
  float minimum;  // taken away: value = scale·q - minimum, not negative
};

/// What is tried for a group of 32: `most` + first, first + 0.1, … levels over its range.
struct LineSearch {
  int most;  // the largest quant
  float first;
  int steps;
};

constexpr LineSearch kSearchQ4_K = {15, -1.0F, 20};
constexpr LineSearch kSearchQ5_K = {31, -0.5F, 15};

/// A group of 32 values, its error weights and their sums.
struct WeightedGroup {
  const float* values;
  float weights[32];
  float sum_w = 0;   // Σ w
  float sum_wx = 0;  // Σ w·x
  float least;
  float most;

  explicit WeightedGroup(const float* group) : values(group), least(group[0]), most(group[0]) {
    float squares = 0;
    for (int i = 0; i < 32; ++i) squares += group[i] * group[i];
    const float typical = std::sqrt(squares / 32);
    for (int i = 0; i < 32; ++i) weights[i] = typical + std::abs(group[i]);
    for (int i = 0; i < 32; ++i) {
      least = std::min(least, group[i]);
      most = std::max(most, group[i]);
      sum_w += weights[i];
      sum_wx += weights[i] * group[i];
    }
    least = std::min(least, 0.0F);
  }

  float error(float scale, float offset, const uint8_t* quants) const {
    float sum = 0;
    for (int i = 0; i < 32; ++i) {
      const float difference = scale * static_cast<float>(quants[i]) + offset - values[i];
      sum += weights[i] * (difference * difference);
    }
    return sum;
  }
};

struct Line {
  float scale;
  float offset;
};

/// Quants of the values less `offset`, times `factor`.
void round_group(const float* values, float offset, float factor, int most, uint8_t* quants) {
  for (int i = 0; i < 32; ++i) {
    quants[i] = static_cast<uint8_t>(nearest(factor * (values[i] - offset), 0, most));
  }
}

/// The least-squares line through the values for these quants, with an offset of at most 0; nothing where all
/// quants are one number.
std::optional<Line> fit_line(const WeightedGroup& group, const uint8_t* quants) {
  float sum_q = 0;
  float sum_qq = 0;
  float sum_qx = 0;
  for (int i = 0; i < 32; ++i) {
    const auto q = static_cast<float>(quants[i]);
    const float w = group.weights[i];
    sum_q += w * q;
    sum_qq += w * q * q;
    sum_qx += w * q * group.values[i];
  }
  const float determinant = group.sum_w * sum_qq - sum_q * sum_q;
  if (!(determinant > 0)) return std::nullopt;
  const float offset = (sum_qq * group.sum_wx - sum_q * sum_qx) / determinant;
  if (offset > 0) return Line{sum_qx / sum_qq, 0};
  return Line{(group.sum_w * sum_qx - group.sum_wx * sum_q) / determinant, offset};
}

/// The best line for a group of 32 and its quants.
LineFit search_line(const float* values, const LineSearch& search, uint8_t* quants) {
  const WeightedGroup group(values);
  if (group.most == group.least) {
    std::fill_n(quants, 32, uint8_t{0});
    return {0, -group.least};
  }
  const auto most = static_cast<float>(search.most);
  const float factor = most / (group.most - group.least);
  Line best = {1 / factor, group.least};
  round_group(values, best.offset, factor, search.most, quants);
  float least_error = group.error(best.scale, best.offset, quants);
  for (int step = 0; step <= search.steps; ++step) {
    // From the best offset so far, not from the least value.
    const float levels = search.first + 0.1F * static_cast<float>(step) + most;
    uint8_t tried[32];
    round_group(values, best.offset, levels / (group.most - best.offset), search.most, tried);
    const std::optional<Line> line = fit_line(group, tried);
    if (!line) continue;
    const float error = group.error(line->scale, line->offset, tried);
    if (error < least_error) {
      std::copy_n(tried, 32, quants);
      least_error = error;
      best = *line;
    }
  }
  return {best.scale, -best.offset};
}

/// Eight pairs of 6-bit numbers as unpack_scale_min reads them.
void pack_scale_mins(const ScaleMin (&pairs)[8], uint8_t (&packed)[12]) {
  for (int i = 0; i < 4; ++i) {
    const ScaleMin low = pairs[i];
    const ScaleMin high = pairs[i + 4];
    packed[i] = static_cast<uint8_t>(low.scale | ((high.scale >> 4) << 6));
    packed[i + 4] = static_cast<uint8_t>(low.min | ((high.min >> 4) << 6));
    packed[i + 8] = static_cast<uint8_t>((high.scale & 15) | ((high.min & 15) << 4));
  }
}

uint8_t six_bits(float value) {
  return std::min<uint8_t>(63, static_cast<uint8_t>(nearest(value)));
}

/// The scales of a Q4_K or Q5_K block and its 256 quants.
template <typename Block>
void encode_lines(const float* values, const LineSearch& search, Block& block, uint8_t (&quants)[256]) {
  LineFit lines[8];
  float most_scale = 0;
  float most_minimum = 0;
  for (int g = 0; g < 8; ++g) {
    lines[g] = search_line(values + 32 * g, search, quants + 32 * g);
    most_scale = std::max(most_scale, lines[g].scale);
    most_minimum = std::max(most_minimum, lines[g].minimum);
  }
  const float scale_factor = most_scale > 0 ? 63.0F / most_scale : 0.0F;
  const float minimum_factor = most_minimum > 0 ? 63.0F / most_minimum : 0.0F;
  ScaleMin pairs[8];
  for (int g = 0; g < 8; ++g) {
    pairs[g] = {six_bits(scale_factor * lines[g].scale), six_bits(minimum_factor * lines[g].minimum)};
  }
  pack_scale_mins(pairs, block.scales);
  block.scale = f32_to_f16(most_scale / 63.0F);
  block.min_scale = f32_to_f16(most_minimum / 63.0F);
  for (int g = 0; g < 8; ++g) {
    const float scale = f16_to_f32(block.scale) * static_cast<float>(pairs[g].scale);
    if (scale == 0) continue;  // the quants of the search stay
    const float minimum = f16_to_f32(block.min_scale) * static_cast<float>(pairs[g].min);
    for (int i = 32 * g; i < 32 * g + 32; ++i) {
      quants[i] = static_cast<uint8_t>(nearest((values[i] + minimum) / scale, 0, search.most));
    }
  }
}

/// Group 2j in the low nibbles of packed[32j …], group 2j + 1 in the high ones.
void pack_nibble_pairs(const uint8_t (&quants)[256], uint8_t (&packed)[128]) {
  for (int i = 0; i < 128; ++i) {
    const uint8_t* pair = quants + 64 * (i / 32) + i % 32;
    packed[i] = static_cast<uint8_t>((pair[0] & 15) | ((pair[32] & 15) << 4));
  }
}

/// Σ w·x·q and Σ w·q² with w = x², of 16 values for quants rounded at `factor`.
struct Projection {
  float with_values = 0;
  float with_quants = 0;
};

Projection project(const float* values, float factor) {
  Projection sums;
  for (int i = 0; i < 16; ++i) {
    const auto q = static_cast<float>(nearest(factor * values[i], -32, 31));
    const float w = values[i] * values[i];
    sums.with_values += w * values[i] * q;
    sums.with_quants += w * q * q;
  }
  return sums;
}

/// The best scale for a group of 16 with quants -32 … 31, which `quants` gets 32 larger.
float search_scale(const float* values, uint8_t* quants) {
  float extreme = 0;
  for (int i = 0; i < 16; ++i) {
    if (std::abs(values[i]) > std::abs(extreme)) extreme = values[i];
  }
  if (std::abs(extreme) < kZeroGroup) {
    std::fill_n(quants, 16, uint8_t{0});
    return 0;
  }
  const auto round_all = [&](float factor) {
    for (int i = 0; i < 16; ++i) quants[i] = static_cast<uint8_t>(nearest(factor * values[i], -32, 31) + 32);
  };
  float factor = -32 / extreme;
  round_all(factor);
  const Projection first = project(values, factor);
  float scale = first.with_quants != 0 ? first.with_values / first.with_quants : 0;
  float best = scale * first.with_values;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    factor = -(32 + 0.1F * static_cast<float>(step)) / extreme;
    const Projection sums = project(values, factor);
    if (sums.with_quants > 0 && sums.with_values * sums.with_values > best * sums.with_quants) {
      round_all(factor);
      scale = sums.with_values / sums.with_quants;
      best = scale * sums.with_values;
    }
  }
  return scale;
}

/// Low nibbles and upper two bits as BlockQ6_K has them.
void pack_six_bits(const uint8_t (&quants)[256], BlockQ6_K& block) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* from = quants + 128 * half;
    for (int i = 0; i < 32; ++i) {
      const uint8_t q[4] = {from[i], from[i + 32], from[i + 64], from[i + 96]};
      block.low_bits[64 * half + i] = static_cast<uint8_t>((q[0] & 15) | ((q[2] & 15) << 4));
      block.low_bits[64 * half + 32 + i] = static_cast<uint8_t>((q[1] & 15) | ((q[3] & 15) << 4));
      block.high_bits[32 * half + i] =
          static_cast<uint8_t>((q[0] >> 4) | ((q[1] >> 4) << 2) | ((q[2] >> 4) << 4) | ((q[3] >> 4) << 6));
    }
  }
}

}  // namespace

void encode(const float* values, BlockQ4_K& block) {
  uint8_t quants[256];
  encode_lines(values, kSearchQ4_K, block, quants);
  pack_nibble_pairs(quants, block.quants);
}

void encode(const float* values, BlockQ5_K& block) {
  uint8_t quants[256];
  encode_lines(values, kSearchQ5_K, block, quants);
  pack_nibble_pairs(quants, block.quants);
  for (int i = 0; i < 32; ++i) {
    unsigned fifth = 0;
    for (int g = 0; g < 8; ++g) fifth |= static_cast<unsigned>(quants[32 * g + i] >> 4) << g;
    block.high_bits[i] = static_cast<uint8_t>(fifth);
  }
}

void encode(const float* values, BlockQ6_K& block) {
  uint8_t quants[256];
  float scales[16];
  float extreme = 0;
  for (int g = 0; g < 16; ++g) {
    scales[g] = search_scale(values + 16 * g, quants + 16 * g);
    if (std::abs(scales[g]) > std::abs(extreme)) extreme = scales[g];
  }
  if (std::abs(extreme) < kZeroGroup) {
    block = {};
    return;
  }
  const float factor = -128.0F / extreme;
  block.scale = f32_to_f16(1 / factor);
  for (int g = 0; g < 16; ++g) {
    block.scales[g] = static_cast<int8_t>(std::min(127, nearest(factor * scales[g])));
    const float scale = f16_to_f32(block.scale) * static_cast<float>(block.scales[g]);
    if (scale == 0) continue;  // the quants of the search stay
    for (int i = 16 * g; i < 16 * g + 16; ++i) {
      quants[i] = static_cast<uint8_t>(nearest(values[i] / scale, -32, 31) + 32);
    }
  }
  pack_six_bits(quants, block);
}

}  // namespace retro::tensor
