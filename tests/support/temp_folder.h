// A folder of a test's own for small files, in memory where there is a place for it (tests sync a great
// deal), removed with everything in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace retro::support {

class TempFolder {
 public:
  TempFolder() {
    std::string name = "/dev/shm/retrograd-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      name = (std::filesystem::temp_directory_path() / "retrograd-XXXXXX").string();
      RETRO_CHECK(::mkdtemp(name.data()) != nullptr);
    }
    path_ = name;
  }
  ~TempFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace retro::support
