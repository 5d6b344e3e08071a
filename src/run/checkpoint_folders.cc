#include "run/checkpoint_folders.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "run/checkpoint.h"

namespace retro::run {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kState = ".state";
constexpr std::string_view kAdapter = ".gguf";
constexpr size_t kStepDigits = 12;
constexpr uint64_t kStepLimit = 1'000'000'000'000;

std::string step_name(uint64_t step, std::string_view suffix) {
  RETRO_CHECK(step < kStepLimit);
  return fmt::format("{}{:012}{}", kStepPrefix, step, suffix);
}

bool there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

void remove_quietly(const fs::path& path) {
  try {
    if (g_write_fault) g_write_fault(0);
  } catch (const Error&) {
    return;
  }
  std::error_code error;
  fs::remove_all(path, error);
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(ErrorKind::io, "{}: cannot list the checkpoints: {}", directory.string(), error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "step-000000000012.state.tmp" → "step-000000000012.state", for names of checkpoints only.
std::optional<std::string> without(std::string_view name, std::string_view kind, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  name.remove_suffix(suffix.size());
  if (!name.ends_with(kind)) return std::nullopt;
  const std::string state = std::string(name.substr(0, name.size() - kind.size())) + std::string(kState);
  if (state != "best.state" && !step_of_state(state)) return std::nullopt;
  return std::string(name);
}

/// An adapter without a state, of a save or removal that broke off.
void remove_orphan(const fs::path& directory, const std::string& state) {
  const auto step = step_of_state(state);
  if (step && !existing_state(directory / state)) remove_quietly(step_adapter_path(directory, *step));
}

/// Swaps two folders in one step; false where the file system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
  if (g_write_fault) g_write_fault(0);
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == ENOSYS || errno == EINVAL || errno == ENOTSUP || errno == EPERM) return false;
  fail(ErrorKind::io, "{}: cannot exchange with {}: {}", b.string(), a.string(), std::strerror(errno));
}

}  // namespace

fs::path step_state_path(const fs::path& directory, uint64_t step) {
  return directory / step_name(step, kState);
}

fs::path step_adapter_path(const fs::path& directory, uint64_t step) {
  return directory / step_name(step, kAdapter);
}

fs::path best_adapter_path(const fs::path& directory) {
  return directory / "best.gguf";
}

fs::path best_state_path(const fs::path& directory) {
  return directory / "best.state";
}

fs::path with_suffix(fs::path path, const char* suffix) {
  path += suffix;
  return path;
}

std::optional<uint64_t> step_of_state(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string_view digits = name;
  if (!digits.starts_with(kStepPrefix) || !digits.ends_with(kState)) return std::nullopt;
  digits.remove_prefix(kStepPrefix.size());
  if (digits.size() != kStepDigits + kState.size()) return std::nullopt;
  digits.remove_suffix(kState.size());
  uint64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return step;
}

std::optional<fs::path> existing_state(const fs::path& state) {
  if (there(state)) return state;
  const fs::path old = with_suffix(state, ".old");
  return there(old) ? std::optional(old) : std::nullopt;
}

std::vector<uint64_t> checkpoint_steps(const fs::path& directory) {
  std::vector<uint64_t> steps;
  for (std::string name : names_in(directory)) {
    if (const auto state = without(name, kState, ".old")) name = *state;
    if (const auto step = step_of_state(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

void replace_state(const fs::path& fresh, const fs::path& target) {
  const fs::path old = with_suffix(target, ".old");
  fs::path replaced;
  if (!there(target)) {
    rename_path(fresh, target);
  } else if (exchange(fresh, target)) {
    replaced = fresh;
  } else {
    rename_path(target, old);
    try {
      rename_path(fresh, target);
    } catch (...) {
      std::error_code error;
      fs::rename(old, target, error);
      throw;
    }
    replaced = old;
  }
  sync_folder(target.parent_path());
  if (!replaced.empty()) remove_quietly(replaced);
}

void remove_step(const fs::path& directory, uint64_t step) {
  const fs::path state = step_state_path(directory, step);
  const fs::path deleted = with_suffix(state, ".deleted");
  remove_quietly(deleted);
  rename_path(state, deleted);
  sync_folder(directory);
  remove_quietly(step_adapter_path(directory, step));
  remove_quietly(deleted);
}

void clean_leftovers(const fs::path& directory) {
  const std::vector<std::string> names = names_in(directory);
  for (const std::string& name : names) {
    const auto state = without(name, kState, ".old");
    if (!state) continue;
    if (there(directory / *state)) {
      remove_quietly(directory / name);
    } else {
      rename_path(directory / name, directory / *state);
    }
  }
  for (const std::string& name : names) {
    for (const char* suffix : {".tmp", ".deleted"}) {
      if (const auto state = without(name, kState, suffix)) {
        // The adapter goes first: its leftover folder is what tells that it belongs to no state.
        remove_orphan(directory, *state);
        remove_quietly(directory / name);
      }
    }
    if (without(name, kAdapter, ".tmp")) remove_quietly(directory / name);
  }
}

}  // namespace retro::run
