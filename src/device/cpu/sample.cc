// Softmax of whole rows of logits, and a token drawn from it.
//
// Sums run over fixed blocks of the vocabulary: in each the maximum m_b and Σ e^(z - m_b) in virtual lanes;
// the blocks' sums are brought together in order, in double.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/sample.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/det_math.h"
#include "device/cpu/head_rows.h"
#include "device/cpu/math-inl.h"
#include "device/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE float maximum_of(const float* z, size_t n) {
  const F32 d;
  V32 top = hn::Set(d, z[0]);
  size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) top = hn::Max(top, hn::LoadU(d, z + i));
  float maximum = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < n; ++i) maximum = std::max(maximum, z[i]);
  return maximum;
}

/// Σ e^(z - maximum) of the elements with z >= least.
HWY_INLINE float sum_of_exp(const float* z, size_t n, float maximum, float least) {
  const F32 d;
  const V32 base = hn::Set(d, maximum);
  const V32 lowest = hn::Set(d, least);
  Lanes16 sum = zero_lanes();
  const auto add = [&](size_t part, V32 value) {
    const V32 weight = hn::IfThenElseZero(hn::Ge(value, lowest), exp(hn::Sub(value, base)));
    sum.part[part] = hn::Add(sum.part[part], weight);
  };
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) {
    for (size_t j = 0; j < kParts; ++j) add(j, hn::LoadU(d, z + i + j * kVectorLanes));
  }
  if (i < n) {
    HWY_ALIGN float rest[kVirtualLanes];
    std::fill(rest, rest + kVirtualLanes, maximum - 1000.0F);  // e^-1000 is 0
    std::memcpy(rest, z + i, (n - i) * sizeof(float));
    for (size_t j = 0; j < kParts; ++j) add(j, hn::Load(d, rest + j * kVectorLanes));
  }
  return sum_of_lanes(sum);
}

void block_sums(const float* z, size_t n, BlockSum* sums) {
  constexpr size_t kBlock = kVocabularyBlock;
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = std::min(kBlock, n - i);
    const float maximum = maximum_of(z + i, count);
    sums[i / kBlock] = {maximum, sum_of_exp(z + i, count, maximum, -INFINITY)};
  }
}

/// Σ e^(z - maximum) of a row's elements with z >= least.
double mass_from(const float* z, size_t n, float maximum, float least) {
  constexpr size_t kBlock = kVocabularyBlock;
  double mass = 0;
  for (size_t i = 0; i < n; i += kBlock) mass += sum_of_exp(z + i, std::min(kBlock, n - i), maximum, least);
  return mass;
}

/// weights[i] = e^(z[i] - maximum), 0 where z[i] < least.
void weights_of(const float* z, size_t n, float maximum, float least, float* weights) {
  const F32 d;
  for (size_t i = 0; i < n; i += kVectorLanes) {
    const V32 value = load_n(z + i, n - i);
    const V32 weight = exp(hn::Sub(value, hn::Set(d, maximum)));
    store_n(hn::IfThenElseZero(hn::Ge(value, hn::Set(d, least)), weight), weights + i, n - i);
  }
}

/// z *= factor; false where an element is NaN or +infinity.
bool scale_finite(float* z, size_t n, float factor) {
  const F32 d;
  auto all = hn::FirstN(d, kVectorLanes);
  for (size_t i = 0; i < n; i += kVectorLanes) {
    const V32 value = hn::Mul(load_n(z + i, n - i), hn::Set(d, factor));
    all = hn::And(all, hn::Lt(value, hn::Set(d, INFINITY)));
    store_n(value, z + i, n - i);
  }
  return hn::AllTrue(d, all);
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(block_sums);
HWY_EXPORT(mass_from);
HWY_EXPORT(weights_of);
HWY_EXPORT(scale_finite);

namespace {

using Blocks = std::array<BlockSum, kMaxVocabularyBlocks>;

size_t block_count(size_t n) {
  return (n + kVocabularyBlock - 1) / kVocabularyBlock;
}

SoftmaxSum together(const Blocks& blocks, size_t n) {
  SoftmaxSum total{-INFINITY, 0};
  for (size_t b = 0; b < block_count(n); ++b) {
    const auto [maximum, sum] = blocks[b];
    if (maximum == -INFINITY) continue;
    if (maximum > total.maximum) {
      const double before = total.sum == 0 ? 0 : total.sum * det_exp(double{total.maximum} - maximum);
      total.sum = before + sum;
      total.maximum = maximum;
    } else {
      total.sum += sum * det_exp(static_cast<double>(maximum) - total.maximum);
    }
  }
  return total;
}

/// Floats as integers of the same order.
int32_t order_of(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits < 0 ? static_cast<int32_t>(0x80000000U - static_cast<uint32_t>(bits)) : bits;
}

float of_order(int32_t order) {
  return order < 0 ? std::bit_cast<float>(0x80000000U - static_cast<uint32_t>(order))
                   : std::bit_cast<float>(order);
}

/// The largest logit whose own mass and that of all above it reaches `mass`: halving the numbers between the
/// least and the greatest that can weigh anything.
float nucleus_edge(const float* z, size_t n, float maximum, double mass) {
  int32_t low = order_of(maximum - 90);  // e^-90 is less than the least float
  int32_t high = order_of(maximum);
  while (low < high) {
    const auto middle = static_cast<int32_t>(low + (int64_t{high} - low + 1) / 2);
    if (HWY_DYNAMIC_DISPATCH(mass_from)(z, n, maximum, of_order(middle)) >= mass) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return of_order(low);
}

/// The token at which the running sum of weights passes `target`; of tokens at exactly `least` only the
/// first `edge_tokens` count.
int32_t token_at(const float* z, size_t n, float maximum, float least, int64_t edge_tokens, double target) {
  std::array<float, kVocabularyBlock> weights;
  double sum = 0;
  int32_t last = -1;
  for (size_t begin = 0; begin < n; begin += kVocabularyBlock) {
    const size_t count = std::min<size_t>(kVocabularyBlock, n - begin);
    HWY_DYNAMIC_DISPATCH(weights_of)(z + begin, count, maximum, least, weights.data());
    for (size_t i = 0; i < count; ++i) {
      if (weights[i] == 0 || (z[begin + i] == least && edge_tokens-- <= 0)) continue;
      sum += weights[i];
      last = static_cast<int32_t>(begin + i);
      if (sum > target) return last;
    }
  }
  return last;
}

int32_t draw_from_nucleus(const float* z, size_t n, const SoftmaxSum& softmax, const Draw& draw) {
  const double wanted = static_cast<double>(draw.top_p) * softmax.sum;
  const float least = nucleus_edge(z, n, softmax.maximum, wanted);
  const double above =
      HWY_DYNAMIC_DISPATCH(mass_from)(z, n, softmax.maximum, std::nextafter(least, INFINITY));
  const double each = det_exp(static_cast<double>(least) - softmax.maximum);
  const auto equals = std::count(z, z + n, least);
  const auto needed = static_cast<int64_t>(std::ceil((wanted - above) / each));
  const int64_t kept = std::clamp<int64_t>(needed, above > 0 ? 0 : 1, equals);
  return token_at(z, n, softmax.maximum, least, kept,
                  static_cast<double>(draw.uniform) * (above + static_cast<double>(kept) * each));
}

/// Finds the block first, so that only its weights are made again.
int32_t draw_from_all(const float* z, size_t n, const Blocks& blocks, const SoftmaxSum& softmax,
                      float uniform) {
  double left = static_cast<double>(uniform) * softmax.sum;
  size_t chosen = 0;
  for (size_t b = 0; b < block_count(n); ++b) {
    if (!(blocks[b].maximum > -INFINITY)) continue;
    const double mass = blocks[b].sum * det_exp(static_cast<double>(blocks[b].maximum) - softmax.maximum);
    if (mass <= 0) continue;
    chosen = b;
    if (left < mass) break;
    left -= mass;
  }
  const size_t begin = chosen * kVocabularyBlock;
  const size_t count = std::min<size_t>(kVocabularyBlock, n - begin);
  return static_cast<int32_t>(begin) + token_at(z + begin, count, softmax.maximum, -INFINITY, 0, left);
}

}  // namespace

SoftmaxSum softmax_of(const float* z, size_t n) {
  Blocks blocks;
  HWY_DYNAMIC_DISPATCH(block_sums)(z, n, blocks.data());
  return together(blocks, n);
}

Drawn draw_token(float* z, size_t n, const Draw& draw) {
  const bool greedy = draw.inverse_temperature == 0;
  if (!HWY_DYNAMIC_DISPATCH(scale_finite)(z, n, greedy ? 1 : draw.inverse_temperature)) return {};
  Blocks blocks;
  HWY_DYNAMIC_DISPATCH(block_sums)(z, n, blocks.data());
  const SoftmaxSum softmax = together(blocks, n);
  if (!(softmax.maximum > -INFINITY)) return {};
  Drawn drawn;
  if (greedy) {
    drawn.token = static_cast<int32_t>(std::max_element(z, z + n) - z);
  } else if (draw.top_p < 1) {
    drawn.token = draw_from_nucleus(z, n, softmax, draw);
  } else {
    drawn.token = draw_from_all(z, n, blocks, softmax, draw.uniform);
  }
  if (drawn.token >= 0)
    drawn.logprob = static_cast<float>(z[drawn.token] - (softmax.maximum + det_log(softmax.sum)));
  return drawn;
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
