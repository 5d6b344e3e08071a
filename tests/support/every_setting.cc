#include "tests/support/every_setting.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/compare.h"
#include "tests/support/cpu_targets.h"

namespace retro::test {

std::vector<float> same_under_every_setting(const std::function<std::vector<float>(device::Device&)>& run) {
  std::optional<std::vector<float>> first;
  for (const int64_t target : cpu_targets()) {
    const OnTarget on(target);
    for (const int threads : {1, 2, 7}) {
      const auto device = device::make_cpu_device(threads);
      const std::vector<float> values = run(*device);
      if (!first) first = values;
      EXPECT_TRUE(same_bits(values, *first)) << cpu_target_name(target) << ", " << threads << " threads";
    }
  }
  return first.value_or(std::vector<float>());
}

void append(std::vector<float>& to, const std::vector<float>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace retro::test
