// Any text is a run document or one Error(config); never a crash, a hang or another exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "run/document.h"
#include "run/signature.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto document =
        retro::run::parse_document({reinterpret_cast<const char*>(data), size}, "folder/run.toml");
    retro::run::document_hash(document);
  } catch (const retro::Error& error) {
    RETRO_CHECK(error.kind() == retro::ErrorKind::config);
  }
  return 0;
}
