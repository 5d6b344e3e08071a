#include "reward/protocol.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/json_text.h"

namespace retro::reward {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBatch = "_retrograd_batch";
constexpr const char* kIndex = "_retrograd_index";
constexpr const char* kBatchEnd = "_retrograd_batch_end";

std::string line_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json parse_object(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  Json object;
  try {
    object = text::parse_json(line);
  } catch (const Error& error) {
    const bool words =
        line.find("NaN") != std::string_view::npos || line.find("nan") != std::string_view::npos ||
        line.find("Inf") != std::string_view::npos || line.find("inf") != std::string_view::npos;
    fail(ErrorKind::protocol, "is not JSON: {}{}", error.what(),
         words ? " (a reward is a finite number; JSON has no NaN and no Infinity)" : "");
  }
  if (!object.is_object()) {
    fail(ErrorKind::protocol, "is no JSON object; an answer is {{\"reward\": 1.0}}");
  }
  return object;
}

std::string shown(const Json& value) {
  constexpr size_t kShown = 60;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "…";
}

double finite_number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    fail(ErrorKind::protocol, "has no \"{}\"; an answer is {{\"reward\": 1.0}}", key);
  }
  if (!found->is_number() || !std::isfinite(found->get<double>())) {
    fail(ErrorKind::protocol, "has \"{}\": {}; it must be a finite number, as 1.0", key, shown(*found));
  }
  return found->get<double>();
}

void check_echo(const Json& object, const char* key, int64_t expected) {
  const auto found = object.find(key);
  if (found == object.end()) {
    fail(ErrorKind::protocol, "has no \"{}\"; each answer echoes that of its request, here {}", key,
         expected);
  }
  if (!found->is_number_integer() || *found != expected) {
    fail(ErrorKind::protocol,
         "has \"{}\": {} where {} is due; answers come in the order of the requests and echo their numbers",
         key, shown(*found), expected);
  }
}

}  // namespace

std::string greeting_line() {
  return line_of({{"protocol", kProtocolName}});
}

std::string request_line(const RewardRequest& request, const std::optional<BatchPlace>& place) {
  Json object = {{"prompt", request.prompt}, {"completion", request.completion}};
  if (place) {
    object[kBatch] = place->batch;
    object[kIndex] = place->index;
  }
  return line_of(object);
}

std::string batch_end_line(int64_t batch) {
  return line_of({{kBatchEnd, batch}});
}

Reward parse_reward(std::string_view line, const std::optional<BatchPlace>& place, bool judged) {
  const Json object = parse_object(line);
  if (object.contains(kBatchEnd)) {
    fail(ErrorKind::protocol, "ends the batch, but an answer is still due");
  }
  if (place) {
    check_echo(object, kBatch, place->batch);
    check_echo(object, kIndex, place->index);
  }
  Reward reward;
  reward.reward = finite_number(object, "reward");
  if (!object.contains("judge_weight")) return reward;
  if (!judged) {
    fail(ErrorKind::protocol, "has \"judge_weight\", but this run has no judge; leave it out");
  }
  reward.judge_weight = finite_number(object, "judge_weight");
  if (*reward.judge_weight < 0) {
    fail(ErrorKind::protocol, "has \"judge_weight\": {}; it must be at least 0", *reward.judge_weight);
  }
  return reward;
}

void check_greeting(std::string_view line) {
  const Json object = parse_object(line);
  const Json* name = text::member(object, "protocol");
  if (name != nullptr && *name == kProtocolName) return;
  fail(ErrorKind::protocol,
       "does not answer the greeting {{\"protocol\": \"{}\"}} with the same line{}; a program without the "
       "protocol runs with reward_mode = \"oneshot\"",
       kProtocolName, name == nullptr ? std::string() : ", but with protocol " + shown(*name));
}

void check_batch_end(std::string_view line, int64_t batch) {
  const Json object = parse_object(line);
  if (!object.contains(kBatchEnd)) {
    fail(ErrorKind::protocol,
         "comes behind the last answer of the batch, where {{\"{}\": {}}} is due; one answer a completion",
         kBatchEnd, batch);
  }
  check_echo(object, kBatchEnd, batch);
}

}  // namespace retro::reward
