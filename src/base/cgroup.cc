#include "base/cgroup.h"

#include <fstream>
#include <iterator>

namespace retro {

std::string read_system_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> cgroup_folders() {
  const std::string text = read_system_file("/proc/self/cgroup");
  const size_t at = text.find("0::");
  std::string path = at == std::string::npos ? "/" : text.substr(at + 3, text.find('\n', at) - at - 3);
  std::vector<std::string> folders;
  for (;;) {
    folders.push_back("/sys/fs/cgroup" + path);
    const size_t slash = path.find_last_of('/');
    if (path.size() <= 1 || slash == std::string::npos) return folders;
    path.resize(slash);
  }
}

}  // namespace retro
