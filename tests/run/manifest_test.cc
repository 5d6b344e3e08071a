// A manifest says exactly what is wrong with it, whatever its bytes.
#include "run/manifest.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "run/signature_file.h"
#include "tests/run/checkpoint_case.h"

namespace retro::run {
namespace {

const Manifest kSample = {77, {{"weights.f32", 2800, std::string(32, 'a')}, {"x", 0, std::string(32, '0')}}};

std::string refusal(const std::string& text) {
  try {
    parse_manifest(text, "folder/manifest.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(std::string(error.what()).rfind("folder/manifest.json: ", 0), 0U) << error.what();
    return error.what();
  }
  return {};
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = manifest_text(kSample);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Manifest, RoundTrip) {
  const Manifest back = parse_manifest(manifest_text(kSample), "m");
  EXPECT_EQ(back.step, 77U);
  ASSERT_EQ(back.files.size(), 2U);
  EXPECT_EQ(back.files[0].name, "weights.f32");
  EXPECT_EQ(back.files[0].bytes, 2800U);
  EXPECT_EQ(back.files[0].xxh3_128, std::string(32, 'a'));
}

TEST(Manifest, EveryTruncationIsRefused) {
  const std::string text = manifest_text(kSample);
  // The last byte is the line end behind the closing brace.
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_TRUE(says(refusal(text.substr(0, size)), "JSON"));
}

TEST(Manifest, FieldsAreNamed) {
  EXPECT_TRUE(says(refusal("[]"), "not an object"));
  EXPECT_TRUE(says(refusal("{}"), "'format'"));
  EXPECT_TRUE(says(refusal(changed("retrograd checkpoint", "other")), "not the manifest of a checkpoint"));
  EXPECT_TRUE(says(refusal(changed("\"version\": 1", "\"version\": 2")), "version 2"));
  EXPECT_TRUE(says(refusal(changed("77", "-77")), "'step'"));
  EXPECT_TRUE(says(refusal(changed("77", "7.5")), "'step'"));
  EXPECT_TRUE(says(refusal(changed("77", "78")), "its own checksum"));
  EXPECT_TRUE(says(refusal(changed("2800", "2801")), "its own checksum"));
  EXPECT_TRUE(says(refusal(changed("2800", "18446744073709551615")), "more than any disk"));
  EXPECT_TRUE(says(refusal(changed("2800", "1e300")), "'bytes'"));
  EXPECT_TRUE(says(refusal(changed("\"x\"", "\"weights.f32\"")), "twice"));
  EXPECT_TRUE(says(refusal(changed("aaaa", "AAAA")), "32 hex digits"));
  for (const char* name : {"", "..", "../x", "/etc/passwd", "a/b", "A", ".hidden", "a\\u0000b"}) {
    EXPECT_TRUE(says(refusal(changed("\"x\"", std::string("\"") + name + "\"")), "'name'")) << name;
  }
  EXPECT_TRUE(says(refusal(changed("\"step\"", "\"more\": 1, \"step\"")), "fields that are not"));
  EXPECT_TRUE(says(refusal(std::string(kManifestLimit + 1, ' ')), "at most"));
  EXPECT_TRUE(says(refusal(std::string(500000, '[')), "JSON"));
}

TEST(SignatureFile, RoundTripAndRefusals) {
  const Signature sample = {{{"a.b", "1"}, {"quote", "\"\n\\ü"}}, {{"device", "cpu"}}};
  const Signature back = parse_signature(signature_text(sample), "s");
  EXPECT_EQ(back.fixed, sample.fixed);
  EXPECT_EQ(back.said, sample.said);
  for (const char* text :
       {"", "[]", "{}", "{\"fixed\": 1, \"said\": []}", "{\"fixed\": [[\"a\"]], \"said\": []}",
        "{\"fixed\": [[\"a\", 1]], \"said\": []}", "{\"fixed\": []}"}) {
    EXPECT_THROW(parse_signature(text, "s"), Error) << text;
  }
  EXPECT_THROW(signature_text({{{"a", "\xff"}}, {}}), Error);
}

}  // namespace
}  // namespace retro::run
