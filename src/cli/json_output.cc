#include "cli/json_output.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace retro::cli {

void write_json(const std::optional<std::string>& file, const nlohmann::ordered_json& value) {
  if (!file) return;
  const std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (*file == "-") {
    std::fputs(text.c_str(), stdout);
  } else {
    write_file(*file, text);
  }
}

}  // namespace retro::cli
