#include "run/rollout_state.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace retro::run {

namespace {

nlohmann::json optional_number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

std::optional<double> read_optional(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

}  // namespace

std::string RolloutState::to_json() const {
  const nlohmann::json json = {
      {"adapter", {{"alpha", adapter.alpha}, {"dtype", adapter.dtype}, {"ranks", adapter.ranks}}},
      {"update", update},
      {"step", step},
      {"optimizer_steps", optimizer_steps},
      {"position", position},
      {"tokens", tokens},
      {"kl", {{"updates", kl.updates}, {"coefficient", kl.coefficient}}},
      {"stall", {{"updates", stall.updates}, {"groups", stall.groups}}},
      {"critic",
       {{"weights", critic.weights},
        {"first_moments", critic.first_moments},
        {"second_moments", critic.second_moments},
        {"steps", critic.steps}}},
      {"evaluation_due", evaluation_due},
      {"best_reward", optional_number(best_reward)},
      {"last_evaluation", optional_number(last_evaluation)},
      {"best_step", best_step},
      {"evaluations_without_gain", evaluations_without_gain},
      {"metrics", metrics}};
  return json.dump();
}

RolloutState RolloutState::from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    RolloutState s;
    const auto& adapter = json.at("adapter");
    adapter.at("alpha").get_to(s.adapter.alpha);
    adapter.at("dtype").get_to(s.adapter.dtype);
    adapter.at("ranks").get_to(s.adapter.ranks);
    json.at("update").get_to(s.update);
    json.at("step").get_to(s.step);
    json.at("optimizer_steps").get_to(s.optimizer_steps);
    json.at("position").get_to(s.position);
    json.at("tokens").get_to(s.tokens);
    json.at("kl").at("updates").get_to(s.kl.updates);
    json.at("kl").at("coefficient").get_to(s.kl.coefficient);
    json.at("stall").at("updates").get_to(s.stall.updates);
    json.at("stall").at("groups").get_to(s.stall.groups);
    const auto& critic = json.at("critic");
    critic.at("weights").get_to(s.critic.weights);
    critic.at("first_moments").get_to(s.critic.first_moments);
    critic.at("second_moments").get_to(s.critic.second_moments);
    critic.at("steps").get_to(s.critic.steps);
    json.at("evaluation_due").get_to(s.evaluation_due);
    s.best_reward = read_optional(json.at("best_reward"));
    s.last_evaluation = read_optional(json.at("last_evaluation"));
    json.at("best_step").get_to(s.best_step);
    json.at("evaluations_without_gain").get_to(s.evaluations_without_gain);
    json.at("metrics").get_to(s.metrics);
    return s;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "the checkpoint's trainer.json is not one of this run: {}", error.what());
  }
}

}  // namespace retro::run
