// The names of checkpoint folders, how one takes another's place, and what broken saves leave behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace retro::run {

std::filesystem::path best_state_path(const std::filesystem::path& directory);

/// The path with `suffix` behind its last name, as "best.state" and ".tmp".
std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix);

/// The step that a name "step-<12 digits>.state" says.
std::optional<uint64_t> step_of_state(const std::filesystem::path& path);

/// The path itself, or its `.old` where only that is there; none when neither is.
std::optional<std::filesystem::path> existing_state(const std::filesystem::path& state);

/// Steps of all step checkpoints of a folder, newest first; empty where the folder is missing.
std::vector<uint64_t> checkpoint_steps(const std::filesystem::path& directory);

/// Puts the folder `fresh` in the place of `target` so that a whole `target`, or its `.old`, is there at
/// every instant, makes that durable and removes what was replaced. Throws Error(io) with `target` as it was.
void replace_state(const std::filesystem::path& fresh, const std::filesystem::path& target);

/// Removes a step checkpoint, folder and adapter. Throws Error(io).
void remove_step(const std::filesystem::path& directory, uint64_t step);

/// Finishes or undoes what broken saves and removals left. What cannot be removed is left: it is in nobody's
/// way.
void clean_leftovers(const std::filesystem::path& directory);

}  // namespace retro::run
