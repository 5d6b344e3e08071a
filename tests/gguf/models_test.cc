// The two real models: their tables as the gguf package's own dump shows them.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <map>

#include "base/hash.h"
#include "gguf/reader.h"
#include "tensor/dequantize.h"
#include "tests/support/cache.h"

namespace retro::gguf {
namespace {

std::map<std::string, int> count_dtypes(const Reader& model) {
  std::map<std::string, int> counts;
  for (const Tensor& tensor : model.tensors()) ++counts[dtype_name(tensor.dtype)];
  return counts;
}

Reader open_timed(const char* name) {
  const auto path = test::cached(name);
  const auto start = std::chrono::steady_clock::now();
  Reader model(path);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("%s opened in %.2f ms\n", name, took.count());
  return model;
}

TEST(RealModels, SmolLM2) {
  const Reader model = open_timed("smollm2-135m-q4_1.gguf");
  EXPECT_EQ(model.version(), 3U);
  EXPECT_EQ(model.tensors().size(), 272U);
  EXPECT_EQ(model.entries().size(), 33U);
  EXPECT_EQ(count_dtypes(model), (std::map<std::string, int>{{"F32", 61}, {"Q4_1", 210}, {"Q8_0", 1}}));
  EXPECT_EQ(model.get_string("general.architecture"), "llama");
  EXPECT_EQ(model.get_u32("llama.embedding_length"), 576U);
  EXPECT_EQ(model.get_f32("llama.attention.layer_norm_rms_epsilon"), 1e-5F);
  EXPECT_FALSE(model.get_bool("tokenizer.ggml.add_bos_token"));
  const auto tokens = model.get_strings("tokenizer.ggml.tokens");
  ASSERT_EQ(tokens.size(), 49152U);
  EXPECT_EQ(tokens[1], "<|im_start|>");
  EXPECT_EQ(model.get_strings("tokenizer.ggml.merges").size(), 48900U);
  EXPECT_EQ(model.get_i32s("tokenizer.ggml.token_type").at(1), 3);
  const Tensor& embedding = model.tensor("token_embd.weight");
  EXPECT_EQ(embedding.cols(), 576);
  EXPECT_EQ(embedding.rows(), 49152);
  EXPECT_EQ(embedding.bytes, 49152U * 576 / 32 * 34);
}

TEST(RealModels, Gemma3) {
  const Reader model = open_timed("gemma3-270m-q4_k_m.gguf");
  EXPECT_EQ(model.tensors().size(), 236U);
  EXPECT_EQ(model.get_string("general.architecture"), "gemma3");
  EXPECT_EQ(model.get_u32_per_layer("gemma3.attention.head_count_kv", 18), std::vector<uint32_t>(18, 1));
  EXPECT_EQ(model.get_strings("tokenizer.ggml.tokens").size(), 262144U);
  EXPECT_EQ(model.get_f32s("tokenizer.ggml.scores").at(0), -1000.0F);
  EXPECT_EQ(model.tensor("blk.0.attn_output.weight").dtype, DType::Q4_K);
  EXPECT_EQ(model.tensor("blk.17.ffn_down.weight").dtype, DType::Q6_K);
  EXPECT_EQ(shape_text(model.tensor("blk.0.attn_q.weight")), "[640, 1024]");
  EXPECT_EQ(model.find_tensor("output.weight"), nullptr);  // tied to the embedding
}

TEST(RealModels, EveryVocabularyFileOpens) {
  int opened = 0;
  for (const auto& file : std::filesystem::directory_iterator(test::cached("llama_models"))) {
    if (file.path().extension() != ".gguf") continue;
    const Reader model(file.path());
    EXPECT_GT(model.get_strings("tokenizer.ggml.tokens").size(), 1000U) << file.path();
    ++opened;
  }
  EXPECT_GT(opened, 10);
}

// As tools/references/fingerprint.py computes it from what the gguf package reads.
TEST(RealModels, TheFingerprintIsThatOfAnIndependentReader) {
  EXPECT_EQ(Reader(test::cached("smollm2-135m-q4_1.gguf")).fingerprint(), "9bf665d53891b9968ad84e66dcab2586");
  EXPECT_EQ(Reader(test::cached("gemma3-270m-q4_k_m.gguf")).fingerprint(),
            "5f370e97481b04397b4eb8b307bbd571");
}

/// XXH3-128 over all values in table order, decoded row by row.
std::string decoded_hash(const Reader& model) {
  Hasher hasher;
  for (const Tensor& tensor : model.tensors()) {
    std::vector<float> row(static_cast<size_t>(tensor.cols()));
    const int64_t stride = tensor::row_bytes(tensor.dtype, tensor.cols());
    for (int64_t i = 0; i < tensor.rows(); ++i) {
      tensor::dequantize_row(tensor.dtype, tensor.data + i * stride, row.data(), tensor.cols());
      hasher.update(std::as_bytes(std::span(row)));
    }
  }
  return hasher.hex();
}

// As tools/references/decoded_hash.py computes it from what the gguf package decodes.
TEST(RealModels, EveryWeightIsDecodedAsThePackageDoes) {
  EXPECT_EQ(decoded_hash(Reader(test::cached("smollm2-135m-q4_1.gguf"))), "cf38caba3a20a1c4ea43e2dc8ec4b59e");
  EXPECT_EQ(decoded_hash(Reader(test::cached("gemma3-270m-q4_k_m.gguf"))),
            "5fcbb91c54170d791a89b22535b442e8");
}

}  // namespace
}  // namespace retro::gguf
