// Any text is a chat file or one Error(data); a record that was accepted once is accepted again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& line : retro::data::check_chat(text, "chat.jsonl")) {
      RETRO_CHECK(retro::data::parse_chat_record(line.text, line.number).messages != nullptr);
    }
  } catch (const retro::Error& error) {
    RETRO_CHECK(error.kind() == retro::ErrorKind::data);
  }
  return 0;
}
