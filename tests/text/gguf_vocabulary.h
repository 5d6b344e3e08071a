// Vocabularies of GGUF files, and toy ones.
#pragma once

#include <filesystem>
#include <memory>

#include "gguf/reader.h"
#include "text/tokenizer.h"

namespace retro::text {

/// The vocabulary part of an open file; its views live as long as the reader.
inline VocabularySource vocabulary_of(const gguf::Reader& file) {
  const auto id = [&](const char* key) {
    return file.has(key) ? std::optional(file.get_u32(key)) : std::nullopt;
  };
  const auto flag = [&](const char* key) {
    return file.has(key) ? std::optional(file.get_bool(key)) : std::nullopt;
  };
  VocabularySource source;
  source.model = file.get_string("tokenizer.ggml.model");
  source.pre = file.get_string("tokenizer.ggml.pre", "");
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  source.tokens.assign(tokens.begin(), tokens.end());
  if (file.has("tokenizer.ggml.scores")) source.scores = file.get_f32s("tokenizer.ggml.scores");
  if (file.has("tokenizer.ggml.token_type")) source.types = file.get_i32s("tokenizer.ggml.token_type");
  if (file.has("tokenizer.ggml.merges")) {
    const auto merges = file.get_strings("tokenizer.ggml.merges");
    source.merges.assign(merges.begin(), merges.end());
  }
  source.bos = id("tokenizer.ggml.bos_token_id");
  source.eos = id("tokenizer.ggml.eos_token_id");
  source.eot = id("tokenizer.ggml.eot_token_id");
  source.eom = id("tokenizer.ggml.eom_token_id");
  source.unk = id("tokenizer.ggml.unknown_token_id");
  source.pad = id("tokenizer.ggml.padding_token_id");
  source.add_bos = flag("tokenizer.ggml.add_bos_token");
  source.add_eos = flag("tokenizer.ggml.add_eos_token");
  source.add_space_prefix = flag("tokenizer.ggml.add_space_prefix");
  return source;
}

/// The tokenizer of a file.
inline Tokenizer tokenizer_of(const std::filesystem::path& path) {
  const gguf::Reader file(path);
  return Tokenizer(vocabulary_of(file));
}

}  // namespace retro::text
