#include "run/train_state.h"

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

std::string TrainState::to_json() const {
  const nlohmann::json json = {
      {"adapter", {{"alpha", adapter.alpha}, {"dtype", adapter.dtype}, {"ranks", adapter.ranks}}},
      {"epoch", epoch},
      {"step_in_epoch", step_in_epoch},
      {"step", step},
      {"tokens", tokens},
      {"epoch_loss", epoch_loss},
      {"epoch_tokens", epoch_tokens},
      {"last_loss", last_loss},
      {"last_gradient_norm", last_gradient_norm},
      {"best_loss", optional_number(best_loss)},
      {"last_evaluation", optional_number(last_evaluation)},
      {"best_step", best_step},
      {"evaluations_without_gain", evaluations_without_gain},
      {"evaluation_due", evaluation_due}};
  return json.dump();
}

TrainState TrainState::from_json(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    TrainState s;
    const auto& adapter = json.at("adapter");
    adapter.at("alpha").get_to(s.adapter.alpha);
    adapter.at("dtype").get_to(s.adapter.dtype);
    adapter.at("ranks").get_to(s.adapter.ranks);
    json.at("epoch").get_to(s.epoch);
    json.at("step_in_epoch").get_to(s.step_in_epoch);
    json.at("step").get_to(s.step);
    json.at("tokens").get_to(s.tokens);
    json.at("epoch_loss").get_to(s.epoch_loss);
    json.at("epoch_tokens").get_to(s.epoch_tokens);
    json.at("last_loss").get_to(s.last_loss);
    json.at("last_gradient_norm").get_to(s.last_gradient_norm);
    s.best_loss = read_optional(json.at("best_loss"));
    s.last_evaluation = read_optional(json.at("last_evaluation"));
    json.at("best_step").get_to(s.best_step);
    json.at("evaluations_without_gain").get_to(s.evaluations_without_gain);
    json.at("evaluation_due").get_to(s.evaluation_due);
    return s;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "the checkpoint's trainer.json is not one of this program: {}", error.what());
  }
}

}  // namespace retro::run
