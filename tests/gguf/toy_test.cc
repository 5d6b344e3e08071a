// The toy models that other tests train on have the form of real ones and weights of a sensible size.
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "gguf/reader.h"
#include "tensor/dequantize.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_gguf.h"

namespace retro::gguf {
namespace {

std::filesystem::path temporary(const std::string& name) {
  static const support::TempFolder folder;
  return folder / name;
}

double standard_deviation(const Tensor& tensor) {
  std::vector<float> row(static_cast<size_t>(tensor.cols()));
  const auto stride = static_cast<size_t>(tensor::row_bytes(tensor.dtype, tensor.cols()));
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < tensor.rows(); ++i) {
    tensor::dequantize_row(tensor.dtype, tensor.data + static_cast<size_t>(i) * stride, row.data(),
                           tensor.cols());
    for (const float x : row) {
      sum += x;
      squares += static_cast<double>(x) * x;
    }
  }
  const auto n = static_cast<double>(tensor.elements());
  return std::sqrt(squares / n - (sum / n) * (sum / n));
}

TEST(ToyModel, LlamaHasTheTensorsOfItsFamily) {
  const auto path = temporary("llama.gguf");
  test::write_toy_model(path, {.tied = false});
  const Reader model(path);
  EXPECT_EQ(model.tensors().size(), 3U + 2 * 9);
  EXPECT_EQ(shape_text(model.tensor("blk.1.attn_k.weight")), "[32, 16]");
  EXPECT_EQ(shape_text(model.tensor("blk.1.ffn_down.weight")), "[64, 32]");
  EXPECT_EQ(model.tensor("output.weight").rows(), model.get_u32("llama.vocab_size"));
  EXPECT_EQ(model.get_strings("tokenizer.ggml.tokens").size(), 281U);
  EXPECT_LT(model.files()[0].bytes().size(), 300U << 10);
}

TEST(ToyModel, GemmaHasTheTensorsOfItsFamily) {
  const auto path = temporary("gemma.gguf");
  test::write_toy_model(path, {.architecture = "gemma3", .vocab = 300, .sliding_window = 16});
  const Reader model(path);
  EXPECT_EQ(model.tensors().size(), 2U + 2 * 13);
  EXPECT_EQ(model.get_u32("gemma3.attention.sliding_window"), 16U);
  EXPECT_EQ(shape_text(model.tensor("blk.0.attn_q_norm.weight")), "[8]");
  EXPECT_EQ(model.get_strings("tokenizer.ggml.tokens")[6 + 10], "<0x0A>");
  EXPECT_EQ(model.tensor("token_embd.weight").rows(), 300);
  EXPECT_FALSE(model.has("tokenizer.ggml.merges"));
}

TEST(ToyModel, EveryTypeHasWeightsOfTheSameSpread) {
  for (uint32_t id = 0; id < 256; ++id) {
    const tensor::DTypeInfo* info = tensor::find_dtype(id);
    if (info == nullptr || !info->decodable) continue;
    const DType dtype = info->dtype;
    const auto path = temporary("dtypes.gguf");
    test::write_toy_model(
        path, {.embedding = 256, .heads = 4, .kv_heads = 1, .head_dim = 64, .ffn = 256, .dtype = dtype});
    const Reader model(path);
    EXPECT_EQ(model.tensor("blk.0.ffn_up.weight").dtype, dtype);
    EXPECT_NEAR(standard_deviation(model.tensor("blk.0.ffn_up.weight")), 1.0 / 16, 0.2 / 16)
        << dtype_name(dtype);
    EXPECT_NEAR(standard_deviation(model.tensor("blk.0.ffn_norm.weight")), 0.1, 0.02);
  }
}

TEST(ToyModel, TheSameSpecGivesTheSameBytes) {
  test::write_toy_model(temporary("a.gguf"), {.dtype = DType::Q4_1});
  test::write_toy_model(temporary("b.gguf"), {.dtype = DType::Q4_1});
  test::write_toy_model(temporary("c.gguf"), {.dtype = DType::Q4_1, .seed = 2});
  EXPECT_EQ(read_file(temporary("a.gguf")), read_file(temporary("b.gguf")));
  EXPECT_NE(read_file(temporary("a.gguf")), read_file(temporary("c.gguf")));
}

}  // namespace
}  // namespace retro::gguf
