// signature.json of a checkpoint.
#pragma once

#include <string>
#include <string_view>

#include "run/signature.h"

namespace retro::run {

/// `{"fixed": [[field, value], …], "said": […]}`.
std::string signature_text(const Signature& signature);

/// Reads what `signature_text` wrote; Error(io) behind `where` for anything else.
Signature parse_signature(std::string_view text, const std::string& where);

}  // namespace retro::run
