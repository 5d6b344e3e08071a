// Running a test on each instruction set that this machine has and the kernels are compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace retro::test {

/// Highway's bits of those sets, the best first; without the plain one.
std::vector<int64_t> cpu_targets();

/// The same for the products of sampling, which know AVX3_DL too: sets of bits, since the other kernels then
/// run on AVX3.
std::vector<int64_t> fast_cpu_targets();

/// Of a set the first.
std::string cpu_target_name(int64_t target);

/// While it lives, kernels run on `target` alone.
class OnTarget {
 public:
  explicit OnTarget(int64_t target);
  ~OnTarget();
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;
};

}  // namespace retro::test
