#include "run/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/hash.h"

namespace retro::run {

namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "retrograd checkpoint";
constexpr uint64_t kVersion = 1;
constexpr size_t kMostFiles = 4096;
constexpr size_t kLongestName = 128;
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

const json& field(const json& object, const char* key, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end()) fail(ErrorKind::io, "{}: lacks the field '{}'", where, key);
  return *at;
}

uint64_t number(const json& object, const char* key, const std::string& where) {
  const json& value = field(object, key, where);
  if (!value.is_number_unsigned()) fail(ErrorKind::io, "{}: '{}' is not a whole number", where, key);
  return value.get<uint64_t>();
}

std::string text(const json& object, const char* key, const std::string& where) {
  const json& value = field(object, key, where);
  if (!value.is_string()) fail(ErrorKind::io, "{}: '{}' is not a string", where, key);
  return value.get<std::string>();
}

void check_fields(const json& object, size_t count, const char* what, const std::string& where) {
  if (!object.is_object()) fail(ErrorKind::io, "{}: {} is not an object", where, what);
  if (object.size() > count) fail(ErrorKind::io, "{}: {} has fields that are not of a manifest", where, what);
}

bool is_checksum(std::string_view value) {
  return value.size() == 32 && value.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

ManifestFile parse_entry(const json& entry, const std::string& where) {
  check_fields(entry, 3, "an entry of 'files'", where);
  ManifestFile file{text(entry, "name", where), number(entry, "bytes", where),
                    text(entry, "xxh3_128", where)};
  if (!is_checkpoint_file_name(file.name)) {
    fail(ErrorKind::io, "{}: an entry of 'files' has a 'name' that no checkpoint file has", where);
  }
  if (file.bytes > kMostBytes) {
    fail(ErrorKind::io, "{}: '{}' is said to have {} bytes, more than any disk", where, file.name,
         file.bytes);
  }
  if (!is_checksum(file.xxh3_128)) {
    fail(ErrorKind::io, "{}: the checksum of '{}' is not 32 hex digits", where, file.name);
  }
  return file;
}

std::string body(const Manifest& manifest) {
  std::string lines;
  for (const ManifestFile& file : manifest.files) {
    lines += fmt::format("{}\n    {{\"name\": \"{}\", \"bytes\": {}, \"xxh3_128\": \"{}\"}}",
                         lines.empty() ? "" : ",", file.name, file.bytes, file.xxh3_128);
  }
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"step\": {},\n  \"files\": [{}\n  ],\n", kFormat,
      kVersion, manifest.step, lines);
}

}  // namespace

bool is_checkpoint_file_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::string manifest_text(const Manifest& manifest) {
  const std::string text = body(manifest);
  return fmt::format("{}  \"checksum\": \"{}\"\n}}\n", text, hash_hex(text));
}

Manifest parse_manifest(std::string_view bytes, const std::string& where) {
  if (bytes.size() > kManifestLimit) {
    fail(ErrorKind::io, "{}: is {} bytes; a manifest has at most {}", where, bytes.size(), kManifestLimit);
  }
  const json root = json::parse(bytes, nullptr, false);
  if (root.is_discarded()) fail(ErrorKind::io, "{}: is not JSON", where);
  check_fields(root, 5, "the manifest", where);
  if (text(root, "format", where) != kFormat) {
    fail(ErrorKind::io, "{}: is not the manifest of a checkpoint", where);
  }
  const uint64_t version = number(root, "version", where);
  if (version != kVersion) {
    fail(ErrorKind::io, "{}: is of version {}; this program reads version {}", where, version, kVersion);
  }
  Manifest manifest;
  manifest.step = number(root, "step", where);
  const json& files = field(root, "files", where);
  if (!files.is_array() || files.size() > kMostFiles) {
    fail(ErrorKind::io, "{}: 'files' is not a list of at most {} entries", where, kMostFiles);
  }
  std::set<std::string> names;
  for (const json& entry : files) {
    manifest.files.push_back(parse_entry(entry, where));
    if (!names.insert(manifest.files.back().name).second) {
      fail(ErrorKind::io, "{}: names '{}' twice", where, manifest.files.back().name);
    }
  }
  if (text(root, "checksum", where) != hash_hex(body(manifest))) {
    fail(ErrorKind::io, "{}: does not match its own checksum", where);
  }
  return manifest;
}

}  // namespace retro::run
