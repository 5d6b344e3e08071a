// Counter-based random numbers: a value depends on its key and index alone, never on what was drawn before.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"

namespace retro {

/// The SplitMix64 finalizer (Steele, Lea, Flood 2014).
constexpr uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

__extension__ using uint128 = unsigned __int128;

/// A stream keyed by (seed, name).
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name) : key_(splitmix64(seed) ^ fnv1a64(name)) {}

  uint64_t bits(uint64_t index) const { return splitmix64(splitmix64(key_ + index)); }
  /// Uniform in [0, 1), 24 bits.
  float uniform(uint64_t index) const { return static_cast<float>(bits(index) >> 40) * 0x1p-24F; }
  /// Uniform in [0, bound); bias below 2^-32 for bound < 2^32.
  uint64_t below(uint64_t index, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<uint128>(bits(index)) * bound) >> 64);
  }

 private:
  uint64_t key_;
};

}  // namespace retro
