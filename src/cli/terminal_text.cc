#include "cli/terminal_text.h"

namespace retro::cli {

std::string without_controls(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    const bool c0 = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    clean += c0 || c1 ? '?' : text[i];
    if (c1) ++i;
  }
  return clean;
}

}  // namespace retro::cli
