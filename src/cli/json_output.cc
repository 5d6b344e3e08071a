#include "cli/json_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace retro::cli {

namespace {

namespace fs = std::filesystem;

// "/dev/stdout" is one of its names.
bool is_standard_output(const std::string& file) {
  if (file == "-") return true;
  struct stat named {};
  struct stat output {};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
         named.st_dev == output.st_dev && named.st_ino == output.st_ino;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  // What is not there yet, as an output, has a name only.
  const auto name = [](const fs::path& path) { return fs::absolute(behind_links(path)).lexically_normal(); };
  return name(a) == name(b);
}

// /dev/stderr and /dev/fd/3 stand for something open, even where that is a file.
bool takes_writes(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return true;
  const std::string name = fs::absolute(path).lexically_normal().string();
  return name.starts_with("/dev/fd/") || name.starts_with("/dev/std");
}

}  // namespace

std::vector<UsedFile> used_files(const run::Document& document) {
  std::vector<UsedFile> files = {{"the run document", document.path},
                                 {"the model", document.model.path},
                                 {"output.path", document.output.path}};
  if (!document.rolls_out()) files.push_back({"sft.data", document.sft.data});
  if (document.rolls_out()) files.push_back({"the prompts", document.rollout().prompts});
  if (document.reference) files.push_back({"reference.model", document.reference->model});
  if (document.observe) files.push_back({"observe.directory", document.observe->directory});
  if (document.lora.init_adapter) files.push_back({"lora.init_adapter", *document.lora.init_adapter});
  if (document.evaluation) files.push_back({"evaluation.data", document.evaluation->data});
  if (document.metrics.jsonl) files.push_back({"metrics.jsonl", *document.metrics.jsonl});
  if (document.checkpoint) files.push_back({"checkpoint.directory", document.checkpoint->directory});
  return files;
}

void refuse_to_replace(const std::optional<std::string>& json, const std::vector<UsedFile>& files) {
  if (!json || *json == "-") return;
  for (const UsedFile& file : files) {
    if (!same_file(*json, file.path)) continue;
    fail(ErrorKind::config, "--json {}: is also {}, which the result would replace; name another file", *json,
         file.what);
  }
}

fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as Linux has it
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path;
}

bool prints_results(const std::optional<std::string>& json) {
  return !json || !is_standard_output(*json);
}

void write_json(const std::optional<std::string>& file, const nlohmann::ordered_json& value) {
  if (!file) return;
  const std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  try {
    if (is_standard_output(*file)) {
      std::fputs(text.c_str(), stdout);
    } else if (takes_writes(*file)) {
      AppendFile(*file).append(text);
    } else {
      write_file(behind_links(*file), text);
    }
  } catch (const Error& error) {
    throw LostResult(fmt::format("--json: {}", error.what()));
  }
}

}  // namespace retro::cli
