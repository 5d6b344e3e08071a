#include "run/signature_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace retro::run {

namespace {

using nlohmann::json;

Fields parse_fields(const json& root, const char* key, const std::string& where) {
  const auto at = root.find(key);
  if (at == root.end() || !at->is_array()) fail(ErrorKind::io, "{}: '{}' is not a list", where, key);
  Fields fields;
  for (const json& pair : *at) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      fail(ErrorKind::io, "{}: an entry of '{}' is not a field and its value", where, key);
    }
    fields.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
  }
  return fields;
}

}  // namespace

std::string signature_text(const Signature& signature) {
  const json root = {{"fixed", signature.fixed}, {"said", signature.said}};
  try {
    return root.dump(1) + "\n";
  } catch (const json::exception&) {
    fail(ErrorKind::io, "the signature of this run holds text that is not UTF-8 and cannot be kept");
  }
}

Signature parse_signature(std::string_view text, const std::string& where) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) fail(ErrorKind::io, "{}: is not a JSON object", where);
  return {parse_fields(root, "fixed", where), parse_fields(root, "said", where)};
}

}  // namespace retro::run
