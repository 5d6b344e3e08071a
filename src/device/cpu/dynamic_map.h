// The dynamic 8-bit maps (Dettmers et al. 2022, "8-bit optimizers via block-wise quantization"): 256 numbers
// in
// [-1, 1] or [0, 1], spaced evenly within each of seven decades, twice as many in each as in the one below.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace retro::device::cpu {

class DynamicMap {
 public:
  explicit DynamicMap(bool is_signed);

  /// The number of code c; ascending.
  float operator[](uint8_t code) const { return values_[code]; }

  /// The code of the number nearest to x in [-1, 1], the lower of two equally near ones.
  uint8_t nearest(float x) const {
    const float size = x < 0 ? -x : x;
    if (!(size < 1)) return x < 0 ? 0 : kLast;
    const uint32_t bits = std::bit_cast<uint32_t>(size) >> kShift;
    // Magnitudes below the first bucket start where 0 does.
    const uint32_t bucket = bits < kFirstBucket ? 0 : bits - kFirstBucket + 1;
    uint32_t code = x < 0 ? negative_[bucket] : positive_[bucket];
    while (code < kLast && x > limits_[code]) ++code;
    return static_cast<uint8_t>(code);
  }

 private:
  static constexpr uint32_t kLast = 255;
  static constexpr int kMantissaBits = 5;  // of a bucket: at most four codes in it
  static constexpr int kShift = 23 - kMantissaBits;
  static constexpr uint32_t kFirstBucket = (127U - 32U) << kMantissaBits;  // 2^-32
  static constexpr size_t kBuckets = (32U << kMantissaBits) + 1;

  std::array<float, 256> values_{};
  std::array<float, 255> limits_{};           // [c]: the last number that is c rather than c + 1
  std::array<uint8_t, kBuckets> positive_{};  // the lowest code of a bucket's magnitudes
  std::array<uint8_t, kBuckets> negative_{};
};

}  // namespace retro::device::cpu
