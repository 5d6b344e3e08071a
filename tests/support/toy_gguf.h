// Tiny random models in the form of real ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace retro::gguf {
class Writer;
}

namespace retro::test {

struct ToySpec {
  std::string architecture = "llama";  // a row of the table in toy_gguf.cc
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
  // Keys that are left out where they are 0.
  int64_t sliding_window = 0;
  int64_t sliding_window_pattern = 0;          // every n-th layer is global
  int64_t rope_dims = 0;                       // 0: the whole head
  int64_t original_context = 0;                // rope.scaling.original_context_length
  float attention_softcap = 0;                 // attn_logit_softcapping
  float output_softcap = 0;                    // final_logit_softcapping
  float rope_linear = 0;                       // rope.scaling.factor, of type linear
  float rope_attention = 0;                    // rope.scaling.attn_factor
  std::vector<std::string> rope_factors = {};  // tensors of random factors from 1 to 4, one a rotary pair
  float rope_freq_base = 10000;
  float rms_epsilon = 1e-5F;
  std::string chat_template = "default";  // "default": that of the family; "": left out
  uint64_t seed = 1;
  std::function<void(gguf::Writer&)> more_keys = {};
};

/// Writes the model: gemma's with a SentencePiece vocabulary, others with a byte-level BPE one; metadata and
/// tensor names are those of llama.cpp's converter, so that llama.cpp loads it too. The same spec gives the
/// same bytes.
void write_toy_model(const std::filesystem::path& path, const ToySpec& spec);

}  // namespace retro::test
