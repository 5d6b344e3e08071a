#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

namespace retro {

namespace {

constexpr std::array kNames = {"trace", "debug", "info", "warn", "error", "off"};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  using spdlog::level::level_enum;
  constexpr std::array levels = {level_enum::trace, level_enum::debug, level_enum::info,
                                 level_enum::warn,  level_enum::err,   level_enum::off};
  return levels.at(static_cast<size_t>(level));
}

/// Hands finished lines to a function.
class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(std::string_view)> function) : function_(std::move(function)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    function_(text);
  }
  void flush_() override {}

 private:
  std::function<void(std::string_view)> function_;
};

spdlog::sink_ptr stderr_sink() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color != nullptr && *no_color != '\0';
  return std::make_shared<spdlog::sinks::stderr_color_sink_mt>(plain ? spdlog::color_mode::never
                                                                     : spdlog::color_mode::automatic);
}

std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>("retrograd", stderr_sink());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::warn);
  for (const char* variable : {"RETRO_LOG", "RUST_LOG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    if (const auto level = parse_log_level(value)) {
      logger->set_level(spdlog_level(*level));
    } else if (std::string_view(variable) == "RETRO_LOG") {
      logger->warn("RETRO_LOG is '{}': it takes trace, debug, info, warn, error or off", value);
    }
    break;
  }
  return logger;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = make_logger();
  return *instance;
}

std::optional<LogLevel> level_of(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower == "warning") lower = "warn";
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (lower == kNames[i]) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

}  // namespace

bool log_enabled(LogLevel level) {
  return logger().should_log(spdlog_level(level));
}

void set_log_level(LogLevel level) {
  logger().set_level(spdlog_level(level));
}

void set_log_sink(std::function<void(std::string_view)> sink) {
  spdlog::sink_ptr target = sink ? std::make_shared<FunctionSink>(std::move(sink)) : stderr_sink();
  logger().sinks() = {std::move(target)};
  logger().set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
}

void log_text(LogLevel level, std::string_view text) {
  logger().log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}

std::optional<LogLevel> parse_log_level(std::string_view value) {
  std::optional<LogLevel> general, own;
  while (!value.empty()) {
    const size_t comma = value.find(',');
    std::string_view entry = value.substr(0, comma);
    value = comma == std::string_view::npos ? std::string_view() : value.substr(comma + 1);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      if (const auto level = level_of(entry)) general = level;
    } else if (entry.substr(0, equals) == "retrograd") {
      if (const auto level = level_of(entry.substr(equals + 1))) own = level;
    }
  }
  return own ? own : general;
}

}  // namespace retro
