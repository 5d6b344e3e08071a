// Tiny random models in the form of real ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tensor/dtype.h"

namespace retro::test {

struct ToySpec {
  std::string architecture = "llama";  // or "gemma3"
  int64_t layers = 2;
  int64_t embedding = 32;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 8;
  int64_t ffn = 64;
  int64_t vocab = 0;  // 0: as many tokens as the toy vocabulary has (toy_vocabulary.h)
  int64_t context_length = 256;
  tensor::DType dtype = tensor::DType::F32;           // of every matrix; norms are F32
  std::optional<tensor::DType> embedding_dtype = {};  // of token_embd and output, else `dtype`
  bool tied = true;                                   // no output.weight
  int64_t sliding_window = 0;                         // gemma3; 0: the key is left out
  int64_t sliding_window_pattern = 0;  // gemma3: every n-th layer is global; 0: left out (the default is 6)
  float rope_freq_base = 10000;
  float rms_epsilon = 1e-5F;
  std::string chat_template = "default";  // "default": that of the family; "": left out
  uint64_t seed = 1;
};

/// Writes the model: llama with a byte-level BPE vocabulary, gemma3 with a SentencePiece one; metadata and
/// tensor names are those of llama.cpp's converter, so that llama.cpp loads it too. The same spec gives the
/// same bytes.
void write_toy_model(const std::filesystem::path& path, const ToySpec& spec);

}  // namespace retro::test
