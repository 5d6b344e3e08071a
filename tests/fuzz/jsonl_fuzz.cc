// Any text is a chat file, a prompt file or one Error(data); a record that was accepted once is accepted
// again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/jsonl.h"
#include "data/prompts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& line : retro::data::check_chat(text, "chat.jsonl")) {
      RETRO_CHECK(retro::data::parse_chat_record(line.text, line.number).messages != nullptr);
    }
  } catch (const retro::Error& error) {
    RETRO_CHECK(error.kind() == retro::ErrorKind::data);
  }
  for (const auto use : {retro::data::PromptUse::rollout, retro::data::PromptUse::evaluation}) {
    try {
      for (const auto& line : retro::data::check_prompts(text, "prompts.jsonl", use)) {
        RETRO_CHECK(!retro::data::parse_prompt(line.text, line.number, use).last_user.empty());
      }
    } catch (const retro::Error& error) {
      RETRO_CHECK(error.kind() == retro::ErrorKind::data);
    }
  }
  return 0;
}
