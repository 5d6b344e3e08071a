// Whole updates, from rewards to gradients, against tools/references/rollout_updates.py.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "algo/advantages.h"
#include "algo/gae.h"
#include "algo/policy_gradient.h"
#include "algo/rollout_plan.h"

namespace retro::algo {
namespace {

using nlohmann::json;
using Numbers = std::vector<double>;
using Floats = std::vector<float>;

constexpr double kStored = 2e-11;  // the file holds twelve digits of numbers below 4

json updates() {
  std::ifstream file(RETRO_SOURCE_DIR "/tests/data/rollout_updates.json");
  return json::parse(file);
}

double number(const json& object, const char* key) {
  return object.at(key).get<double>();
}

Floats floats(const json& answer, const char* key) {
  const Numbers numbers = answer.at(key).get<Numbers>();
  return {numbers.begin(), numbers.end()};
}

void expect_gradient(const Floats& actual, const json& answer) {
  const Numbers expected = answer.at("gradient").get<Numbers>();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t t = 0; t < actual.size(); ++t) {
    EXPECT_NEAR(static_cast<double>(actual[t]), expected[t], 1e-7 * std::abs(expected[t]) + 1e-12);
  }
}

size_t check_group(const json& setting, const std::vector<json>& members) {
  const auto most = setting.at("max_new_tokens").get<int64_t>();
  const OverlongPenalty penalty{most, setting.at("buffer_tokens").get<int64_t>(),
                                number(setting, "max_penalty")};
  Numbers rewards;
  std::vector<uint8_t> cut;
  for (const json& member : members) {
    const auto length = static_cast<int64_t>(member.at("policy").size());
    rewards.push_back(number(member, "reward") - (penalty.buffer_tokens > 0 ? penalty.at(length) : 0));
    cut.push_back(member.at("cut").get<bool>() ? 1 : 0);
  }
  const bool alone = setting.at("baseline").get<std::string>() == "leave_one_out";
  const GroupAdvantages group = group_advantages(rewards, cut, setting.at("mask_truncated").get<bool>(),
                                                 alone ? Baseline::leave_one_out : Baseline::mean);
  GrpoObjective objective;
  objective.clip_low = number(setting, "clip_low");
  objective.clip_high = number(setting, "clip_high");
  objective.kl_coefficient = number(setting, "kl_coefficient");
  if (setting.at("level").get<std::string>() == "sequence") objective.level = RatioLevel::sequence;
  objective.denominator = static_cast<double>(group.live_members() * most);
  size_t live = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    EXPECT_NEAR(group.advantages[i], number(members[i], "advantage"), kStored);
    EXPECT_EQ(group.live[i] != 0, members[i].at("live").get<bool>());
    if (group.live[i] == 0) continue;
    ++live;
    const Floats policy = floats(members[i], "policy"), behavior = floats(members[i], "behavior"),
                 reference = floats(members[i], "reference");
    Floats gradient(policy.size());
    PolicySums sums;
    grpo_gradient({policy, behavior, reference, gradient}, group.advantages[i], objective, sums);
    expect_gradient(gradient, members[i]);
  }
  return live;
}

void check_ppo(const json& setting, const std::vector<json>& answers) {
  std::vector<int64_t> tokens, lengths;
  Numbers rewards, values;
  for (const json& answer : answers) {
    tokens.push_back(static_cast<int64_t>(answer.at("policy").size()));
    lengths.push_back(tokens.back() + 1);
    rewards.push_back(number(answer, "reward"));
    for (const double value : answer.at("values").get<Numbers>()) values.push_back(value);
  }
  const bool critic = setting.at("critic").get<bool>();
  const BatchAdvantages batch =
      critic ? critic_advantages(tokens, rewards, values, number(setting, "gamma"), number(setting, "lambda"))
             : reward_advantages(tokens, rewards);
  std::vector<size_t> order(answers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto steps = pack_completions(lengths, order, setting.at("ctx").get<int64_t>());
  size_t first = 0, next = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const size_t i : steps[s]) {
      EXPECT_EQ(i, next++);
      EXPECT_EQ(answers[i].at("step").get<size_t>(), s);
      const auto count = static_cast<size_t>(tokens[i]);
      const std::span<const double> own = std::span(batch.advantages).subspan(first, count);
      for (size_t t = 0; t < count; ++t) {
        EXPECT_NEAR(own[t], answers[i].at("advantages")[t].get<double>(), kStored);
        if (critic) {
          EXPECT_NEAR(batch.returns[first + t], answers[i].at("returns")[t].get<double>(), kStored);
        }
      }
      first += count;
      const Floats policy = floats(answers[i], "policy"), behavior = floats(answers[i], "behavior");
      Floats gradient(count);
      PolicySums sums;
      ppo_gradient({policy, behavior, {}, gradient}, own,
                   {number(setting, "clip_low"), number(setting, "kl_coefficient"),
                    static_cast<int64_t>(steps[s].size())},
                   sums);
      expect_gradient(gradient, answers[i]);
    }
  }
  EXPECT_EQ(next, answers.size());
}

TEST(RolloutUpdate, AgreesWithThePlainReference) {
  size_t live = 0, batches = 0;
  for (const json& update : updates()) {
    const json& setting = update.at("setting");
    const auto answers = update.at("answers").get<std::vector<json>>();
    if (setting.at("algorithm").get<std::string>() == "ppo") {
      check_ppo(setting, answers);
      ++batches;
      continue;
    }
    for (int group = 0; group < 4; ++group) {
      std::vector<json> members;
      for (const json& answer : answers) {
        if (answer.at("group").get<int>() == group) members.push_back(answer);
      }
      live += check_group(setting, members);
    }
  }
  EXPECT_EQ(batches, 2U);
  EXPECT_GT(live, 40U);
}

}  // namespace
}  // namespace retro::algo
