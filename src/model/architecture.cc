#include "model/architecture.h"

#include <array>

#include "base/error.h"
#include "gguf/reader.h"

namespace retro::model {

std::span<const Architecture* const> architectures() {
  static constexpr std::array<const Architecture*, 2> kAll = {&kLlama, &kGemma3};
  return kAll;
}

void refuse_key(const gguf::Reader& file, std::string_view key, std::string_view why) {
  if (file.has(key)) fail(ErrorKind::model, "key '{}': {}", key, why);
}

int32_t positive(const gguf::Reader& file, const std::string& key, std::optional<uint32_t> otherwise) {
  // Products of two such numbers still fit 64 bits with room, and no model comes near.
  constexpr uint32_t kMost = 1U << 24;
  const uint32_t value = otherwise ? file.get_u32(key, *otherwise) : file.get_u32(key);
  if (value == 0 || value > kMost)
    fail(ErrorKind::model, "key '{}': is {}, must be from 1 to {}", key, value, kMost);
  return static_cast<int32_t>(value);
}

float within(const gguf::Reader& file, const std::string& key, float low, float high,
             std::optional<float> otherwise) {
  const float value = otherwise ? file.get_f32(key, *otherwise) : file.get_f32(key);
  // A value that is no number fails both comparisons.
  if (!(value >= low && value <= high))
    fail(ErrorKind::model, "key '{}': is {}, must be from {} to {}", key, value, low, high);
  return value;
}

namespace {

void read_rope(const gguf::Reader& file, const std::string& prefix, Hyperparameters& h) {
  h.rope_dims = positive(file, prefix + "rope.dimension_count", static_cast<uint32_t>(h.head_dim));
  if (h.rope_dims > h.head_dim || h.rope_dims % 2 != 0) {
    fail(ErrorKind::model, "key '{}rope.dimension_count': is {}, must be even and at most the head size {}",
         prefix, h.rope_dims, h.head_dim);
  }
  h.rope.base = rope_base(file, prefix + "rope.freq_base");
  h.rope_local = h.rope;
  const std::string_view type = file.get_string(prefix + "rope.scaling.type", "none");
  if (type != "none" && type != "linear") {
    fail(ErrorKind::model,
         "key '{}rope.scaling.type': '{}' is not available in this build; only none and linear are", prefix,
         type);
  }
  const float factor = type == "none" ? 1.0F : within(file, prefix + "rope.scaling.factor", 1e-3F, 1e6F, {});
  h.rope.scale = 1.0F / factor;
}

}  // namespace

float rope_base(const gguf::Reader& file, const std::string& key) {
  return within(file, key, 1.0F, 1e12F, 10000.0F);
}

Hyperparameters read_common(const gguf::Reader& file, std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  Hyperparameters h;
  h.layers = positive(file, prefix + "block_count");
  h.embedding = positive(file, prefix + "embedding_length");
  h.feed_forward = positive(file, prefix + "feed_forward_length");
  h.context_length = positive(file, prefix + "context_length");
  h.heads = positive(file, prefix + "attention.head_count");
  h.kv_heads = positive(file, prefix + "attention.head_count_kv", static_cast<uint32_t>(h.heads));
  if (h.heads % h.kv_heads != 0) {
    fail(ErrorKind::model, "key '{}attention.head_count_kv': is {}, must divide the {} heads", prefix,
         h.kv_heads, h.heads);
  }
  if (h.embedding % h.heads != 0 && !file.has(prefix + "attention.key_length")) {
    fail(ErrorKind::model, "key '{}attention.head_count': is {}, must divide the embedding length {}", prefix,
         h.heads, h.embedding);
  }
  h.head_dim = positive(file, prefix + "attention.key_length", static_cast<uint32_t>(h.embedding / h.heads));
  const int32_t value_dim =
      positive(file, prefix + "attention.value_length", static_cast<uint32_t>(h.head_dim));
  if (value_dim != h.head_dim) {
    fail(ErrorKind::model,
         "key '{}attention.value_length': is {}, must equal the key length {} in this build", prefix,
         value_dim, h.head_dim);
  }
  h.rms_eps = within(file, prefix + "attention.layer_norm_rms_epsilon", 0.0F, 1.0F, {});
  h.vocabulary = static_cast<int32_t>(file.tensor("token_embd.weight").rows());
  read_rope(file, prefix, h);
  return h;
}

}  // namespace retro::model
