// Any line of a reward program is a finite reward, a greeting, a batch's end, or one Error(protocol).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "reward/protocol.h"

namespace {

template <typename Check>
void only_protocol_errors(Check check) {
  try {
    check();
  } catch (const retro::Error& error) {
    RETRO_CHECK(error.kind() == retro::ErrorKind::protocol);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace retro::reward;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const bool judged : {false, true}) {
    only_protocol_errors([&] {
      const Reward reward = parse_reward(line, BatchPlace{0, 1}, judged);
      RETRO_CHECK(std::isfinite(reward.reward) && (judged || !reward.judge_weight));
    });
    only_protocol_errors([&] { parse_reward(line, std::nullopt, judged); });
  }
  only_protocol_errors([&] { check_greeting(line); });
  only_protocol_errors([&] { check_batch_end(line, 0); });
  return 0;
}
