#include "model/vocabulary.h"

#include "base/error.h"

namespace retro::model {

text::Tokenizer make_tokenizer(const gguf::Reader& file) {
  const auto id = [&](const char* key) {
    return file.has(key) ? std::optional(file.get_u32(key)) : std::nullopt;
  };
  const auto flag = [&](const char* key) {
    return file.has(key) ? std::optional(file.get_bool(key)) : std::nullopt;
  };
  const auto strings = [&](const char* key) {
    std::vector<std::string_view> values;
    if (!file.has(key)) return values;
    const auto all = file.get_strings(key);
    values.assign(all.begin(), all.end());
    return values;
  };
  text::VocabularySource source;
  source.model = file.get_string("tokenizer.ggml.model");
  source.pre = file.get_string("tokenizer.ggml.pre", "");
  source.tokens = strings("tokenizer.ggml.tokens");
  source.merges = strings("tokenizer.ggml.merges");
  if (file.has("tokenizer.ggml.scores")) source.scores = file.get_f32s("tokenizer.ggml.scores");
  if (file.has("tokenizer.ggml.token_type")) source.types = file.get_i32s("tokenizer.ggml.token_type");
  source.bos = id("tokenizer.ggml.bos_token_id");
  source.eos = id("tokenizer.ggml.eos_token_id");
  source.eot = id("tokenizer.ggml.eot_token_id");
  source.eom = id("tokenizer.ggml.eom_token_id");
  source.unk = id("tokenizer.ggml.unknown_token_id");
  source.pad = id("tokenizer.ggml.padding_token_id");
  source.add_bos = flag("tokenizer.ggml.add_bos_token");
  source.add_eos = flag("tokenizer.ggml.add_eos_token");
  source.add_space_prefix = flag("tokenizer.ggml.add_space_prefix");
  try {
    return text::Tokenizer(source);
  } catch (const Error& error) {
    throw error.within(file.path().string());
  }
}

}  // namespace retro::model
