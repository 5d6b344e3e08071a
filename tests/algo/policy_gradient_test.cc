// Surrogate gradients against central differences of the loss as the papers write it, PyTorch, and tables.
#include "algo/policy_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/random.h"
#include "tests/support/finite_difference.h"

namespace retro::algo {
namespace {

using Numbers = std::vector<double>;
using Floats = std::vector<float>;

Floats to_floats(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

// min(r·A, clip(r, 1 - low, 1 + high)·A).
double clipped_objective(double ratio, double advantage, double low, double high) {
  return std::min(ratio * advantage, std::clamp(ratio, 1 - low, 1 + high) * advantage);
}

double k3(double log_ratio) {
  return std::exp(log_ratio) - log_ratio - 1;
}

double grpo_loss(const Numbers& policy, const Numbers& behavior, const Numbers& reference, double advantage,
                 const GrpoObjective& objective) {
  double mean = 0;
  for (size_t t = 0; t < policy.size(); ++t)
    mean += (policy[t] - behavior[t]) / static_cast<double>(policy.size());
  double loss = 0;
  for (size_t t = 0; t < policy.size(); ++t) {
    const double log_ratio = objective.level == RatioLevel::sequence ? mean : policy[t] - behavior[t];
    loss -= clipped_objective(std::exp(log_ratio), advantage, objective.clip_low, objective.clip_high);
    if (!reference.empty()) loss += objective.kl_coefficient * k3(reference[t] - policy[t]);
  }
  return loss / objective.denominator;
}

double ppo_loss(const Numbers& policy, const Numbers& behavior, const Numbers& advantages,
                const PpoObjective& objective) {
  double loss = 0;
  for (size_t t = 0; t < policy.size(); ++t) {
    const double log_ratio = policy[t] - behavior[t], ratio = std::exp(log_ratio);
    loss -= clipped_objective(ratio, advantages[t], objective.clip_range, objective.clip_range);
    loss += objective.kl_coefficient * (ratio - 1 - log_ratio);
  }
  return loss / static_cast<double>(policy.size()) / static_cast<double>(objective.completions);
}

struct Answer {
  Numbers gradient;
  PolicySums sums;
};

Answer grpo(const Numbers& policy, const Numbers& behavior, const Numbers& reference, double advantage,
            const GrpoObjective& objective) {
  const Floats p = to_floats(policy), b = to_floats(behavior), r = to_floats(reference);
  Floats gradient(p.size(), NAN);
  Answer answer;
  grpo_gradient({p, b, r, gradient}, advantage, objective, answer.sums);
  answer.gradient.assign(gradient.begin(), gradient.end());
  return answer;
}

Answer ppo(const Numbers& policy, const Numbers& behavior, const Numbers& advantages,
           const PpoObjective& objective) {
  const Floats p = to_floats(policy), b = to_floats(behavior);
  Floats gradient(p.size(), NAN);
  Answer answer;
  ppo_gradient({p, b, {}, gradient}, advantages, objective, answer.sums);
  answer.gradient.assign(gradient.begin(), gradient.end());
  return answer;
}

// Multiples of 2^-12, so that they are the same as f32 and as double.
Numbers logprobs(size_t count, uint64_t seed, double spread, const Numbers& around = {}) {
  const RandomStream stream(seed, "logprobs");
  Numbers made;
  for (size_t i = 0; i < count; ++i) {
    const double offset = spread * (2.0 * static_cast<double>(stream.uniform(i)) - 1);
    made.push_back(std::round(4096 * ((around.empty() ? -3.0 : around[i]) + offset)) / 4096);
  }
  return made;
}

TEST(GrpoGradient, IsThatOfTheClippedLossByCentralDifferences) {
  constexpr size_t kTokens = 12;
  for (const RatioLevel level : {RatioLevel::token, RatioLevel::sequence}) {
    for (const double advantage : {2.0, -1.5, 0.0}) {
      for (const double spread : {0.1, 1.0, 2.0}) {
        for (const bool with_reference : {false, true}) {
          if (advantage == 0 && !with_reference) continue;  // zero, and so below the comparer's notice
          const GrpoObjective objective{0.2, 0.28, level, 0.3, 5.0};
          const Numbers policy = logprobs(kTokens, 1, 2);
          const Numbers behavior = logprobs(kTokens, 2, spread, policy);
          const Numbers reference = with_reference ? logprobs(kTokens, 3, 2, policy) : Numbers();
          const Answer answer = grpo(policy, behavior, reference, advantage, objective);
          const auto loss = [&](const Numbers& x) {
            return grpo_loss(x, behavior, reference, advantage, objective);
          };
          EXPECT_NEAR(answer.sums.total_loss(), loss(policy), 1e-12 * (1 + std::abs(loss(policy))));
          const bool all_clipped = answer.sums.clipped == static_cast<int64_t>(kTokens) && !with_reference;
          if (!all_clipped) {
            EXPECT_TRUE(test::matches_differences(answer.gradient, loss, policy));
          }
        }
      }
    }
  }
}

TEST(PpoGradient, IsThatOfTheClippedLossByCentralDifferences) {
  constexpr size_t kTokens = 12;
  for (const double kl : {0.0, 0.4}) {
    for (const double spread : {0.1, 1.0}) {
      const PpoObjective objective{0.2, kl, 3};
      const Numbers policy = logprobs(kTokens, 1, 2);
      const Numbers behavior = logprobs(kTokens, 2, spread, policy);
      const Numbers advantages = logprobs(kTokens, 4, 2, Numbers(kTokens, 0.1));
      const Answer answer = ppo(policy, behavior, advantages, objective);
      const auto loss = [&](const Numbers& x) { return ppo_loss(x, behavior, advantages, objective); };
      EXPECT_NEAR(answer.sums.total_loss(), loss(policy), 1e-12);
      EXPECT_TRUE(test::matches_differences(answer.gradient, loss, policy));
    }
  }
}

TEST(GrpoGradient, IsMinusTheAdvantageOverTheDenominatorWhereTheBehaviourIsTheForwardItself) {
  const Numbers policy = logprobs(5, 1, 2);
  for (const RatioLevel level : {RatioLevel::token, RatioLevel::sequence}) {
    const Answer answer = grpo(policy, policy, {}, 1.5, {0.2, 0.28, level, 0, 12.0});
    for (const double gradient : answer.gradient) EXPECT_EQ(gradient, static_cast<double>(-1.5F / 12.0F));
    EXPECT_EQ(answer.sums.clipped, 0);
    EXPECT_EQ(answer.sums.tokens, 5);
  }
}

// Log-ratios +1 and -1: their geometric mean is 1, so nothing is clipped; token by token one of them is.
TEST(GrpoGradient, SequenceRatiosAreMeansOverTheAnswersOwnTokens) {
  const Numbers behavior = {-2, -2}, policy = {-1, -3};
  const GrpoObjective sequence{0.2, 0.28, RatioLevel::sequence, 0, 1.0};
  const GrpoObjective token{0.2, 0.28, RatioLevel::token, 0, 1.0};
  for (const double advantage : {1.0, -1.0}) {
    const Answer whole = grpo(policy, behavior, {}, advantage, sequence);
    EXPECT_EQ(whole.gradient, (Numbers{-advantage, -advantage}));
    EXPECT_EQ(whole.sums.clipped, 0);
    const Answer each = grpo(policy, behavior, {}, advantage, token);
    EXPECT_EQ(each.sums.clipped, 1);
    EXPECT_EQ(each.gradient[advantage > 0 ? 0 : 1], 0.0);
    const double open = advantage > 0 ? std::exp(-1.0) : std::exp(1.0);
    EXPECT_FLOAT_EQ(static_cast<float>(each.gradient[advantage > 0 ? 1 : 0]),
                    static_cast<float>(-advantage * open));
  }
  // A clipped sequence loses all its tokens' gradients and counts them all.
  const Answer clipped = grpo({-1, -1.5}, behavior, {}, 1.0, sequence);
  EXPECT_EQ(clipped.gradient, (Numbers{0, 0}));
  EXPECT_EQ(clipped.sums.clip_fraction(), 1.0);
}

TEST(GrpoGradient, ClipsOnlyWhereTheSurrogateWouldGrow) {
  struct Case {
    double log_ratio, advantage;
    bool clipped;
  };
  for (const Case& one :
       {Case{0.24, 1, false}, Case{0.25, 1, true}, Case{-3, 1, false}, Case{-0.22, -1, false},
        Case{-0.23, -1, true}, Case{3, -1, false}, Case{3, 0, false}}) {
    const Answer answer = grpo({-2 + one.log_ratio}, {-2}, {}, one.advantage, {0.2, 0.28});
    EXPECT_EQ(answer.sums.clipped, one.clipped ? 1 : 0) << one.log_ratio << " " << one.advantage;
    EXPECT_EQ(answer.gradient[0] == 0, one.clipped || one.advantage == 0);
  }
}

TEST(GrpoGradient, TheReferenceRatioIsCappedAndCounted) {
  const GrpoObjective objective{0.2, 0.2, RatioLevel::token, 0.5, 1.0};
  const Answer below = grpo({-12}, {-12}, {-2}, 0, objective);
  EXPECT_EQ(below.sums.capped, 0);
  EXPECT_NEAR(below.gradient[0], -0.5 * (std::exp(10.0) - 1), 1e-2);
  const Answer above = grpo({-100}, {-100}, {-2}, 0, objective);
  EXPECT_EQ(above.sums.capped, 1);
  EXPECT_EQ(above.gradient, below.gradient);
  EXPECT_TRUE(std::isfinite(above.sums.kl));
}

TEST(GrpoGradient, AnEqualReferenceAddsExactlyNothing) {
  const Numbers policy = logprobs(4, 5, 2);
  const Answer answer = grpo(policy, policy, policy, 1.0, {0.2, 0.2, RatioLevel::token, 0.7, 4.0});
  EXPECT_EQ(answer.sums.kl, 0.0);
  EXPECT_EQ(answer.gradient, Numbers(4, -0.25));
}

TEST(PolicySums, AreMeansOverTokens) {
  PolicySums all;
  Answer first = grpo({-1, -2}, {-1, -2}, {}, 1, {});
  Answer second = grpo({-3}, {-4}, {}, 1, {});
  all.add(first.sums);
  all.add(second.sums);
  EXPECT_EQ(all.tokens, 3);
  EXPECT_DOUBLE_EQ(all.entropy(), 2.0);
  EXPECT_DOUBLE_EQ(all.clip_fraction(), 1.0 / 3);
  EXPECT_EQ(PolicySums().clip_fraction(), 0.0);
}

TEST(SamplingGap, HoldsMeanAndMaximum) {
  SamplingGap gap;
  gap.add(Floats{-1, -2}, Floats{-1.5, -2});
  gap.add(Floats{-1}, Floats{-0.75});
  EXPECT_DOUBLE_EQ(gap.mean(), 0.25);
  EXPECT_DOUBLE_EQ(gap.max, 0.5);
}

/// Log-probabilities of `ids` by a table of logits [tokens, vocabulary], and their gradients back to it.
struct LogitTable {
  Numbers logits;
  std::vector<int> ids;
  size_t vocabulary;

  double normalizer(size_t t) const {
    double sum = 0;
    for (size_t v = 0; v < vocabulary; ++v) sum += std::exp(logits[t * vocabulary + v]);
    return std::log(sum);
  }
  Numbers logprobs() const {
    Numbers values;
    for (size_t t = 0; t < ids.size(); ++t)
      values.push_back(logits[t * vocabulary + static_cast<size_t>(ids[t])] - normalizer(t));
    return values;
  }
  Numbers back(const Numbers& gradient) const {
    Numbers values;
    for (size_t i = 0; i < logits.size(); ++i) {
      const size_t t = i / vocabulary;
      const double target = static_cast<size_t>(ids[t]) == i % vocabulary ? 1 : 0;
      values.push_back(gradient[t] * (target - std::exp(logits[i] - normalizer(t))));
    }
    return values;
  }
};

TEST(PolicyGradient, AgreesWithPyTorchsAutograd) {
  std::ifstream file(RETRO_SOURCE_DIR "/tests/data/policy_gradients.json");
  const nlohmann::json document = nlohmann::json::parse(file);
  size_t tried = 0, clipped = 0;
  for (const auto& one : document.at("cases")) {
    const auto numbers = [&](const char* key) { return one.at(key).get<Numbers>(); };
    const auto number = [&](const char* key) { return one.at(key).get<double>(); };
    const LogitTable table{numbers("logits"), one.at("ids").get<std::vector<int>>(),
                           document.at("vocabulary").get<size_t>()};
    const double kl = number("kl_coefficient"), denominator = number("denominator");
    const double low = number("clip_low"), high = number("clip_high");
    const Numbers behavior = numbers("behavior");
    Answer answer;
    if (one.at("algorithm").get<std::string>() == "grpo") {
      const bool by_token = one.at("level").get<std::string>() == "token";
      const RatioLevel level = by_token ? RatioLevel::token : RatioLevel::sequence;
      answer = grpo(table.logprobs(), behavior, kl > 0 ? numbers("reference") : Numbers(),
                    number("advantage"), {low, high, level, kl, denominator});
    } else {
      answer = ppo(table.logprobs(), behavior, numbers("advantages"),
                   {low, kl, static_cast<int64_t>(denominator)});
    }
    const Numbers expected = numbers("dlogits"), actual = table.back(answer.gradient);
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-6 * largest + 1e-9);
    EXPECT_NEAR(answer.sums.total_loss(), number("loss"), 2e-6);
    clipped += static_cast<size_t>(answer.sums.clipped);
    ++tried;
  }
  EXPECT_GE(tried, 20U);
  EXPECT_GT(clipped, 10U);
}

}  // namespace
}  // namespace retro::algo
