// Any text is a manifest, a signature, or one Error(io); never a crash, a hang or another exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "run/manifest.h"
#include "run/signature_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto manifest = retro::run::parse_manifest(text, "manifest.json");
    // What was accepted is written and read again as it was.
    const auto again = retro::run::parse_manifest(retro::run::manifest_text(manifest), "manifest.json");
    RETRO_CHECK(again.files.size() == manifest.files.size() && again.step == manifest.step);
  } catch (const retro::Error& error) {
    RETRO_CHECK(error.kind() == retro::ErrorKind::io);
  }
  try {
    retro::run::parse_signature(text, "signature.json");
  } catch (const retro::Error& error) {
    RETRO_CHECK(error.kind() == retro::ErrorKind::io);
  }
  return 0;
}
