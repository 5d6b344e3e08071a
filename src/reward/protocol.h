// What is said to a reward program and what it answers: lines of JSON, one a completion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace retro::reward {

struct RewardRequest {
  std::string prompt;  ///< the last user message
  std::string completion;
};

struct Reward {
  double reward = 0;
  std::optional<double> judge_weight;
};

/// The place of a completion in the persistent protocol, echoed in its answer.
struct BatchPlace {
  int64_t batch = 0;
  int64_t index = 0;
};

inline constexpr std::string_view kProtocolName = "retrograd-reward/1";

/// The first line of the persistent protocol, in both directions; with its line end, as all `*_line`.
std::string greeting_line();
/// `place`: none in the one-shot form.
std::string request_line(const RewardRequest& request, const std::optional<BatchPlace>& place);
std::string batch_end_line(int64_t batch);

/// Reads an answer. `judged`: whether there is a judge, without which judge_weight is refused. Fields that
/// the protocol does not have are ignored. Throws Error(protocol) with what is wrong, without the line
/// itself.
Reward parse_reward(std::string_view line, const std::optional<BatchPlace>& place, bool judged);
/// Checks the answer to the greeting. Throws as parse_reward.
void check_greeting(std::string_view line);
/// Checks the echo of a batch's end. Throws as parse_reward.
void check_batch_end(std::string_view line, int64_t batch);

}  // namespace retro::reward
