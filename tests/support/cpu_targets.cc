#include "tests/support/cpu_targets.h"

#include "device/cpu/targets.h"
// Highway's headers come after the choice of targets.
#include "hwy/highway.h"

namespace retro::test {

std::vector<int64_t> cpu_targets() {
  std::vector<int64_t> targets;
  constexpr int64_t kPlain = HWY_SCALAR | HWY_EMU128;
  for (int64_t left = hwy::SupportedTargets() & (HWY_TARGETS) & ~kPlain; left != 0; left &= left - 1) {
    targets.push_back(left & -left);
  }
  return targets;
}

std::vector<int64_t> fast_cpu_targets() {
  std::vector<int64_t> targets = cpu_targets();
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) != 0) targets.insert(targets.begin(), HWY_AVX3_DL | HWY_AVX3);
  return targets;
}

std::string cpu_target_name(int64_t target) {
  return hwy::TargetName(target & -target);
}

OnTarget::OnTarget(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

OnTarget::~OnTarget() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace retro::test
