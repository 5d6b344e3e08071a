// The vocabulary of a GGUF file.
#pragma once

#include "gguf/reader.h"
#include "text/tokenizer.h"

namespace retro::model {

/// The tokenizer that the metadata under `tokenizer.ggml.*` describes. Throws Error(model) naming file and
/// key.
text::Tokenizer make_tokenizer(const gguf::Reader& file);

}  // namespace retro::model
