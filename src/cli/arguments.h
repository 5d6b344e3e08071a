// The command line as plain structs, one a command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace retro::cli {

/// What every command takes.
struct CommonArguments {
  std::optional<std::filesystem::path> model;
  std::optional<std::string> device;
};

struct TrainArguments {
  CommonArguments common;
  std::filesystem::path config;
  bool resume = false;
  std::optional<std::filesystem::path> state;  // with resume: which one; none is the newest
  std::optional<std::string> json;
};

struct NewArguments {
  CommonArguments common;
  std::string algorithm;
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> out;  // none: standard output
};

struct PreviewArguments {
  CommonArguments common;
  std::filesystem::path config;
  int64_t records = 3;
  bool ids = false;
  std::optional<std::filesystem::path> data;
};

struct PlanArguments {
  CommonArguments common;
  std::filesystem::path config;
  std::optional<int64_t> memory;  // bytes
  bool write = false;
  std::optional<std::string> json;
};

struct BenchArguments {
  CommonArguments common;
  std::filesystem::path config;
  std::optional<std::filesystem::path> data;
  std::optional<std::filesystem::path> adapter;
  std::optional<int64_t> limit;
  std::string format = "auto";
  std::optional<int64_t> ctx;
  std::optional<std::string> json;
};

struct ChatArguments {
  CommonArguments common;
  std::filesystem::path target;  // a document or a model
  std::optional<std::filesystem::path> adapter;
  bool compare = false;
  bool base_only = false;
  std::optional<std::string> system;
  double temperature = 0.7;
  double top_p = 0.95;
  int64_t max_new_tokens = 512;
  std::optional<uint64_t> seed;
  std::optional<int64_t> ctx;
};

struct InspectArguments {
  CommonArguments common;
  std::optional<std::string> json;
};

/// Text that the user asked for (`--help`, `--version`).
struct HelpArguments {
  std::string text;
};

using Arguments = std::variant<HelpArguments, TrainArguments, NewArguments, PreviewArguments, PlanArguments,
                               BenchArguments, ChatArguments, InspectArguments>;

/// Throws Error(config) with a usage hint for words that do not fit.
Arguments parse_arguments(int argc, const char* const* argv);

/// "8GiB", "512 MiB", "1.5G", "1000000" → bytes. Throws Error(config).
int64_t parse_bytes(const std::string& text);

/// "8.0 GiB", "312.4 MiB".
std::string format_bytes(int64_t bytes);

}  // namespace retro::cli
