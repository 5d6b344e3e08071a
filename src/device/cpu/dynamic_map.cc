#include "device/cpu/dynamic_map.h"

#include <algorithm>
#include <vector>

namespace retro::device::cpu {

DynamicMap::DynamicMap(bool is_signed) {
  constexpr int kDecades = 7;
  std::vector<double> values = {0.0, 1.0};
  double decade = 1e-6;
  for (int i = 0; i < kDecades; ++i, decade *= 10) {
    // The middles of `count` equal parts of [0.1, 1].
    const int count = 1 << (is_signed ? i : i + 1);
    for (int k = 0; k < count; ++k) {
      const double middle = decade * (0.1 + 0.9 * (k + 0.5) / count);
      values.push_back(middle);
      if (is_signed) values.push_back(-middle);
    }
  }
  std::sort(values.begin(), values.end());
  std::transform(values.begin(), values.end(), values_.begin(),
                 [](double x) { return static_cast<float>(x); });
  for (size_t c = 0; c < limits_.size(); ++c) {
    limits_[c] = static_cast<float>((static_cast<double>(values_[c]) + values_[c + 1]) / 2);
  }
  const auto code_of = [&](float x) {
    return static_cast<uint8_t>(std::lower_bound(limits_.begin(), limits_.end(), x) - limits_.begin());
  };
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    const float low = bucket == 0 ? 0 : std::bit_cast<float>((kFirstBucket + bucket - 1) << kShift);
    const float high = std::bit_cast<float>((kFirstBucket + bucket) << kShift);
    positive_[bucket] = code_of(low);
    negative_[bucket] = code_of(-high);
  }
}

}  // namespace retro::device::cpu
