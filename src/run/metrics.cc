#include "run/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "run/rfc3339.h"

namespace retro::run {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

std::string quoted(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

struct Event {
  std::string name;
  int64_t step = 0;
};

/// What a line says, none when it is not an event of a metrics file.
std::optional<Event> parse_event(std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto name = object.find("event"), step = object.find("step");
  if (name == object.end() || !name->is_string() || step == object.end() || !step->is_number_integer()) {
    return std::nullopt;
  }
  return Event{name->get<std::string>(), step->get<int64_t>()};
}

/// Calls `visit` with each line, without its end; a last line that has none was torn off and is left out.
template <typename Visit>
void for_each_line(std::string_view text, Visit visit) {
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    visit(text.substr(0, end));
  }
}

/// A path that was meant for another file is found out before that file is lost.
void refuse_foreign(const fs::path& path, std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const bool torn = first.size() == text.size();
  if (text.empty() || parse_event(first) || (torn && text.starts_with("{\"event\":"))) return;
  fail(ErrorKind::config,
       "{}: the file there is not one of metrics (its first line is no event) and is left as it is; choose "
       "another "
       "path for [metrics].jsonl or remove it",
       path.string());
}

}  // namespace

MetricsLog::MetricsLog(fs::path path, std::optional<int64_t> resumed_step, Warn warn)
    : warn_(std::move(warn)), resumed_step_(resumed_step.value_or(-1)) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  // A pipe or a terminal has no past to rewrite.
  if (fs::is_regular_file(status) || !fs::exists(status)) {
    OutputFile kept(path);
    if (fs::exists(status)) {
      const MappedFile old(path);
      const std::string_view text(reinterpret_cast<const char*>(old.bytes().data()), old.bytes().size());
      refuse_foreign(path, text);
      if (resumed_step) keep_events(text, kept);
    }
    kept.commit();
  }
  file_.emplace(std::move(path));
}

void MetricsLog::keep_events(std::string_view text, OutputFile& kept) {
  for_each_line(text, [&](std::string_view line) {
    const auto event = parse_event(line);
    if (!event || event->step > resumed_step_) return;
    if (event->step == resumed_step_) present_.push_back(event->name);
    kept.write(line);
    kept.write("\n");
  });
}

void MetricsLog::write(std::string_view event, int64_t step, std::span<const MetricValue> values) {
  if (!file_) return;
  if (step == resumed_step_ && std::find(present_.begin(), present_.end(), event) != present_.end()) return;
  std::string line =
      fmt::format("{{\"event\":{},\"step\":{},\"time\":\"{}\"", quoted(event), step, rfc3339_now());
  for (const auto& [name, value] : values) {
    line += fmt::format(",{}:{}", quoted(name), std::isfinite(value) ? fmt::format("{}", value) : "null");
  }
  line += "}\n";
  try {
    file_->append(line);
  } catch (const std::exception& failure) {
    turn_off(failure);
  }
}

void MetricsLog::sync() {
  if (!file_) return;
  try {
    file_->sync();
  } catch (const std::exception& failure) {
    turn_off(failure);
  }
}

void MetricsLog::turn_off(const std::exception& failure) {
  file_.reset();
  if (warn_) warn_(fmt::format("{}; metrics are no longer written, the run goes on", failure.what()));
}

}  // namespace retro::run
