// Running a kernel under every setting that must not change a bit.
#pragma once

#include <functional>
#include <vector>

#include "device/device.h"

namespace retro::test {

/// What `run` returns on a CPU device with one thread on the best instruction set; fails the test where 2 or
/// 7 threads, or another instruction set, give other bits.
std::vector<float> same_under_every_setting(const std::function<std::vector<float>(device::Device&)>& run);

/// Appends `more`.
void append(std::vector<float>& to, const std::vector<float>& more);

}  // namespace retro::test
