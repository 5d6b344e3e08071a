// The control groups (cgroup v2) that limit this process.
#pragma once

#include <string>
#include <vector>

namespace retro {

/// Folders of this process's group and of each of its ancestors, innermost first; the root alone where the
/// system says nothing.
std::vector<std::string> cgroup_folders();

/// The whole text of a small file of /proc or /sys; empty when it cannot be read.
std::string read_system_file(const std::string& path);

}  // namespace retro
