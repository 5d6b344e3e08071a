#include "tests/support/toy_gguf.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>

#include "base/error.h"
#include "base/random.h"
#include "gguf/writer.h"
#include "tests/support/random_weights.h"
#include "tests/support/toy_vocabulary.h"

namespace retro::test {
namespace {

using gguf::Writer;
using tensor::DType;

constexpr const char* kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr const char* kGemma =
    "{{ bos_token }}{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' "
    "else "
    "message['role'] %}{{ '<start_of_turn>' + role + '\\n' + message['content'] + '<end_of_turn>\\n' }}{% "
    "endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

/// What a block of an architecture has beyond llama's, and in place of it.
struct Form {
  std::string_view architecture;
  bool gemma = false;  // SentencePiece vocabulary, the output norm first, norms behind both halves of a block
  bool biases = false;      // of queries, keys and values
  bool head_norms = false;  // of each query and key head
  bool fused = false;       // queries, keys and values in one matrix, gate and up in another
};

constexpr Form kForms[] = {
    {"llama"},
    {.architecture = "qwen2", .biases = true},
    {.architecture = "qwen3", .head_norms = true},
    {.architecture = "phi3", .fused = true},
    {.architecture = "gemma2", .gemma = true},
    {.architecture = "gemma3", .gemma = true, .head_norms = true},
};

const Form& form_of(const std::string& architecture) {
  for (const Form& form : kForms) {
    if (form.architecture == architecture) return form;
  }
  fail(ErrorKind::internal, "no toy model of architecture {}", architecture);
}

uint32_t u32(int64_t value) {
  return static_cast<uint32_t>(value);
}

/// A model under way: the writer and the weights it points to.
class Toy {
 public:
  explicit Toy(const ToySpec& spec) : spec_(spec), form_(form_of(spec.architecture)), gemma_(form_.gemma) {
    vocabulary_ = gemma_ ? toy_spm(spec.vocab) : toy_bpe(spec.vocab);
  }

  void write(const std::filesystem::path& path) {
    add_settings();
    if (spec_.more_keys) spec_.more_keys(writer_);
    add_vocabulary();
    if (gemma_) norm("output_norm.weight", spec_.embedding);
    const auto vocab = static_cast<int64_t>(vocabulary_.tokens.size());
    const DType dtype = spec_.embedding_dtype.value_or(spec_.dtype);
    matrix("token_embd.weight", spec_.embedding, vocab, dtype);
    for (const std::string& name : spec_.rope_factors) factors(name);
    for (int64_t layer = 0; layer < spec_.layers; ++layer) add_layer(fmt::format("blk.{}.", layer));
    if (!gemma_) norm("output_norm.weight", spec_.embedding);
    if (!spec_.tied) matrix("output.weight", spec_.embedding, vocab, dtype);
    writer_.write(path);
  }

 private:
  std::string key(const char* name) const { return spec_.architecture + "." + name; }

  void add_settings() {
    writer_.add_string("general.architecture", spec_.architecture);
    writer_.add_string("general.type", "model");
    writer_.add_string("general.name", "Toy");
    writer_.add_u32(key("block_count"), u32(spec_.layers));
    writer_.add_u32(key("context_length"), u32(spec_.context_length));
    writer_.add_u32(key("embedding_length"), u32(spec_.embedding));
    writer_.add_u32(key("feed_forward_length"), u32(spec_.ffn));
    writer_.add_u32(key("attention.head_count"), u32(spec_.heads));
    writer_.add_u32(key("attention.head_count_kv"), u32(spec_.kv_heads));
    writer_.add_f32(key("rope.freq_base"), spec_.rope_freq_base);
    writer_.add_f32(key("attention.layer_norm_rms_epsilon"), spec_.rms_epsilon);
    if (gemma_ || spec_.head_dim * spec_.heads != spec_.embedding) {
      writer_.add_u32(key("attention.key_length"), u32(spec_.head_dim));
      writer_.add_u32(key("attention.value_length"), u32(spec_.head_dim));
    }
    if (!gemma_) {
      writer_.add_u32(key("vocab_size"), u32(static_cast<int64_t>(vocabulary_.tokens.size())));
      writer_.add_u32(key("rope.dimension_count"), u32(rope_dims()));
    }
    if (spec_.rope_linear > 0) writer_.add_string(key("rope.scaling.type"), "linear");
    add_unless_zero("rope.scaling.factor", spec_.rope_linear);
    add_unless_zero("rope.scaling.attn_factor", spec_.rope_attention);
    add_unless_zero("rope.scaling.original_context_length", spec_.original_context);
    add_unless_zero("attn_logit_softcapping", spec_.attention_softcap);
    add_unless_zero("final_logit_softcapping", spec_.output_softcap);
    add_unless_zero("attention.sliding_window", spec_.sliding_window);
    add_unless_zero("attention.sliding_window_pattern", spec_.sliding_window_pattern);
  }

  void add_unless_zero(const char* name, float value) {
    if (value != 0) writer_.add_f32(key(name), value);
  }
  void add_unless_zero(const char* name, int64_t value) {
    if (value != 0) writer_.add_u32(key(name), u32(value));
  }
  int64_t rope_dims() const { return spec_.rope_dims > 0 ? spec_.rope_dims : spec_.head_dim; }

  void add_vocabulary() {
    writer_.add_string("tokenizer.ggml.model", gemma_ ? "llama" : "gpt2");
    writer_.add_string("tokenizer.ggml.pre", gemma_ ? "default" : "smollm");
    writer_.add_strings("tokenizer.ggml.tokens", std::span<const std::string>(vocabulary_.tokens));
    if (gemma_) writer_.add_f32s("tokenizer.ggml.scores", vocabulary_.scores);
    writer_.add_i32s("tokenizer.ggml.token_type", vocabulary_.types);
    if (!gemma_)
      writer_.add_strings("tokenizer.ggml.merges", std::span<const std::string>(vocabulary_.merges));
    writer_.add_u32("tokenizer.ggml.bos_token_id", gemma_ ? 2 : 1);
    writer_.add_u32("tokenizer.ggml.eos_token_id", gemma_ ? 1 : 2);
    writer_.add_u32("tokenizer.ggml.unknown_token_id", gemma_ ? 3 : 0);
    writer_.add_u32("tokenizer.ggml.padding_token_id", gemma_ ? 0 : 2);
    writer_.add_bool("tokenizer.ggml.add_bos_token", gemma_);
    if (gemma_) writer_.add_bool("tokenizer.ggml.add_eos_token", false);
    writer_.add_bool("tokenizer.ggml.add_space_prefix", false);
    const std::string text =
        spec_.chat_template == "default" ? (gemma_ ? kGemma : kChatMl) : spec_.chat_template;
    if (!text.empty()) writer_.add_string("tokenizer.chat_template", text);
    writer_.add_u32("general.quantization_version", 2);
  }

  void add_layer(const std::string& prefix) {
    const int64_t queries = spec_.heads * spec_.head_dim;
    const int64_t keys = spec_.kv_heads * spec_.head_dim;
    norm(prefix + "attn_norm.weight", spec_.embedding);
    if (form_.fused) {
      matrix(prefix + "attn_qkv.weight", spec_.embedding, queries + 2 * keys, spec_.dtype);
    } else {
      matrix(prefix + "attn_q.weight", spec_.embedding, queries, spec_.dtype);
      matrix(prefix + "attn_k.weight", spec_.embedding, keys, spec_.dtype);
      matrix(prefix + "attn_v.weight", spec_.embedding, keys, spec_.dtype);
    }
    if (form_.biases) {
      bias(prefix + "attn_q.bias", queries);
      bias(prefix + "attn_k.bias", keys);
      bias(prefix + "attn_v.bias", keys);
    }
    matrix(prefix + "attn_output.weight", queries, spec_.embedding, spec_.dtype);
    if (form_.head_norms) {
      norm(prefix + "attn_q_norm.weight", spec_.head_dim);
      norm(prefix + "attn_k_norm.weight", spec_.head_dim);
    }
    if (gemma_) norm(prefix + "post_attention_norm.weight", spec_.embedding);
    norm(prefix + "ffn_norm.weight", spec_.embedding);
    if (!form_.fused) matrix(prefix + "ffn_gate.weight", spec_.embedding, spec_.ffn, spec_.dtype);
    matrix(prefix + "ffn_up.weight", spec_.embedding, (form_.fused ? 2 : 1) * spec_.ffn, spec_.dtype);
    matrix(prefix + "ffn_down.weight", spec_.ffn, spec_.embedding, spec_.dtype);
    if (gemma_) norm(prefix + "post_ffw_norm.weight", spec_.embedding);
  }

  void norm(const std::string& name, int64_t size) {
    add(name, {size}, DType::F32, random_weights(DType::F32, 1, size, 0.1F, spec_.seed, name, 1.0F));
  }

  void bias(const std::string& name, int64_t size) {
    add(name, {size}, DType::F32, random_weights(DType::F32, 1, size, 0.5F, spec_.seed, name));
  }

  void factors(const std::string& name) {
    const RandomStream stream(spec_.seed, name);
    std::vector<std::byte> bytes(static_cast<size_t>(rope_dims() / 2) * sizeof(float));
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      const float factor = 1 + 3 * stream.uniform(i);
      std::memcpy(bytes.data() + i * sizeof(float), &factor, sizeof(float));
    }
    add(name, {rope_dims() / 2}, DType::F32, std::move(bytes));
  }

  void matrix(const std::string& name, int64_t cols, int64_t rows, DType dtype) {
    const float sigma = 1.0F / std::sqrt(static_cast<float>(cols));
    add(name, {cols, rows}, dtype, random_weights(dtype, rows, cols, sigma, spec_.seed, name));
  }

  void add(const std::string& name, const std::vector<int64_t>& dims, DType dtype,
           std::vector<std::byte> bytes) {
    weights_.push_back(std::move(bytes));
    writer_.add_tensor(name, dims, dtype, std::span<const std::byte>(weights_.back()));
  }

  const ToySpec& spec_;
  const Form& form_;
  bool gemma_;
  ToyVocabulary vocabulary_;
  Writer writer_;
  std::deque<std::vector<std::byte>> weights_;
};

}  // namespace

void write_toy_model(const std::filesystem::path& path, const ToySpec& spec) {
  Toy(spec).write(path);
}

}  // namespace retro::test
