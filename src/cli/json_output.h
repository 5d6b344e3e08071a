// `--json FILE`: the result of a command as one JSON object.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "run/document.h"

namespace retro::cli {

/// A result that could not be handed over. Nothing was wrong with what was asked for, so the exit code is 1.
class LostResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that a command reads or writes, and what it is to the command: "the model".
struct UsedFile {
  std::string what;
  std::filesystem::path path;
};

/// The files that a run of the document reads and writes, itself among them.
std::vector<UsedFile> used_files(const run::Document& document);

/// Throws Error(config) where the result would replace one of the files; called before any work.
void refuse_to_replace(const std::optional<std::string>& json, const std::vector<UsedFile>& files);

/// What a chain of symbolic links ends at, whether that is there or not.
std::filesystem::path behind_links(std::filesystem::path path);

/// Whether results for people may go to standard output: not where `--json -` has it, or a name for the same.
bool prints_results(const std::optional<std::string>& json);

/// Writes the object to the file, or to standard output for "-"; nothing without a name. A file is replaced
/// whole; what a link names, in place of the link; a pipe or a device is written to. Throws LostResult.
void write_json(const std::optional<std::string>& file, const nlohmann::ordered_json& value);

}  // namespace retro::cli
