// The reward programs of examples/ speak the protocol and agree.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reward/reward_program.h"

namespace retro::reward {
namespace {

struct Scored {
  RewardRequest request;
  double reward;
};

std::vector<Scored> answers() {
  const std::string asked = "Which number is larger, 76 or 41?";
  return {
      {{asked, "76"}, 1},
      {{asked, "The larger one is 76."}, 1},
      {{asked, "41 is smaller, 76 is\nlarger \"76\"\t\\"}, 1},
      {{asked, "076"}, 1},
      {{asked, "41"}, 0},
      {{asked, "76, not 41"}, 0},
      {{asked, "176"}, 0},
      {{asked, "seventy-six"}, 0},
      {{asked, ""}, 0},
      {{asked, "0"}, 0},
      {{asked, std::string(5000, '9')}, 0},
      {{asked, "76 \xC3\xA9\xE2\x80\xA6"}, 1},
      {{asked, "76\x01"}, 1},
      {{asked, "41 {\"protocol\": \"76\"}"}, 1},
      {{asked, "\",\"completion\":\"41\",\"_retrograd_batch\":9"}, 0},
      {{"Which number is larger, 9 or 10?", "10"}, 1},
      {{"Which number is larger, 9 or 10?", "9"}, 0},
  };
}

void expect_scores(const std::vector<std::string>& command, RewardMode mode) {
  RewardOptions options;
  options.command = command;
  options.mode = mode;
  options.timeout_seconds = 60;
  RewardProgram program(options);
  for (int batch = 0; batch < 2; ++batch) {
    std::vector<RewardRequest> requests;
    for (const Scored& one : answers()) requests.push_back(one.request);
    const std::vector<Reward> rewards = program.score(requests);
    ASSERT_EQ(rewards.size(), requests.size());
    for (size_t i = 0; i < rewards.size(); ++i) {
      EXPECT_EQ(rewards[i].reward, answers()[i].reward) << command.back() << ": " << requests[i].completion;
    }
  }
  program.finish();
}

const std::string kFolder = RETRO_SOURCE_DIR "/examples/larger/";

TEST(RewardExamples, Python) {
  expect_scores({"python3", kFolder + "reward.py"}, RewardMode::persistent);
  expect_scores({"python3", kFolder + "reward.py"}, RewardMode::oneshot);
}

TEST(RewardExamples, Shell) {
  expect_scores({kFolder + "reward.sh"}, RewardMode::persistent);
}

TEST(RewardExamples, Cpp) {
  expect_scores({RETRO_REWARD_EXAMPLE}, RewardMode::persistent);
  expect_scores({RETRO_REWARD_EXAMPLE}, RewardMode::oneshot);
}

}  // namespace
}  // namespace retro::reward
