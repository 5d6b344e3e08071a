#include "model/architecture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "gguf/reader.h"

namespace retro::model {

std::span<const Architecture* const> architectures() {
  static constexpr std::array<const Architecture*, 6> kAll = {&kLlama, &kQwen2,  &kQwen3,
                                                              &kPhi3,  &kGemma2, &kGemma3};
  return kAll;
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

int32_t window(const gguf::Reader& file, const std::string& key) {
  return file.get_u32(key, 0) == 0 ? 0 : positive(file, key);
}

const float* rope_factors(const gguf::Reader& file, const char* name, int32_t rope_dims) {
  const gguf::Tensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->dtype != tensor::DType::F32 || tensor->elements() != rope_dims / 2) {
    fail(ErrorKind::model, "tensor '{}': must be {} F32 numbers, one a rotary pair", name, rope_dims / 2);
  }
  const auto* factors = reinterpret_cast<const float*>(tensor->data);
  const auto usable = [](float factor) { return factor > 0 && std::isfinite(factor); };
  if (!std::all_of(factors, factors + rope_dims / 2, usable)) {
    fail(ErrorKind::model, "tensor '{}': every factor must be above 0 and finite", name);
  }
  return factors;
}

namespace {

constexpr const char* kOnlyLinear =
    "this rope scaling is not available in this build; linear scaling and factors in the file are";

/// Keys that change what a model computes. Absent is fine, and so is `off`, where the key is a number or a
/// bool that has such a value.
struct Refused {
  const char* key;
  std::optional<float> off;
  const char* why;
};

constexpr Refused kRefused[] = {
    {"expert_count", 0, "mixtures of experts are not available in this build"},
    {"attention.sliding_window", 0, "sliding windows are not available for this architecture"},
    {"attention.sliding_window_pattern", 0,
     "patterns of sliding windows are not available for this architecture"},
    {"attention.scale", 0, "attention scales from the file are not available in this build"},
    {"attention.clamp_kqv", 0, "clamped queries, keys and values are not available in this build"},
    {"attention.max_alibi_bias", 0, "ALiBi is not available in this build"},
    {"attention.causal", 1, "attention that is not causal is not available in this build"},
    {"attn_logit_softcapping", 0, "soft caps are not available for this architecture"},
    {"final_logit_softcapping", 0, "soft caps are not available for this architecture"},
    {"logit_scale", 0, "scaled logits are not available in this build"},
    {"residual_scale", 0, "scaled residuals are not available in this build"},
    {"embedding_scale", 0, "embedding scales from the file are not available in this build"},
    {"rope.freq_base_swa", {}, "a rotary base for windows is not available for this architecture"},
    {"rope.dimension_sections", {}, kOnlyLinear},
    {"rope.scaling.attn_factor", 1, kOnlyLinear},
    {"rope.scaling.alpha", 0, kOnlyLinear},
    {"rope.scaling.yarn_log_multiplier", {}, kOnlyLinear},
    {"rope.scaling.yarn_ext_factor", {}, kOnlyLinear},
    {"rope.scaling.yarn_attn_factor", {}, kOnlyLinear},
    {"rope.scaling.yarn_beta_fast", {}, kOnlyLinear},
    {"rope.scaling.yarn_beta_slow", {}, kOnlyLinear},
};

bool is_off(const gguf::Value& value, float off) {
  const auto equals = [&](const auto& held) {
    using T = std::decay_t<decltype(held)>;
    if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(held) == static_cast<double>(off);
    return false;
  };
  return std::visit(equals, value.data);
}

bool accounts_for(const Architecture& architecture, std::string_view key) {
  const auto& keys = architecture.keys;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void refuse_unknown(const gguf::Reader& file, const Architecture& architecture) {
  for (const Refused& refused : kRefused) {
    const std::string key = fmt::format("{}.{}", architecture.name, refused.key);
    if (!file.has(key) || accounts_for(architecture, refused.key)) continue;
    if (refused.off && is_off(*file.find(key), *refused.off)) continue;
    fail(ErrorKind::model, "key '{}': {}", key, refused.why);
  }
}

void read_rope(const gguf::Reader& file, const Architecture& architecture, Hyperparameters& h) {
  const std::string prefix = std::string(architecture.name) + ".";
  h.rope_dims = positive(file, prefix + "rope.dimension_count", static_cast<uint32_t>(h.head_dim));
  if (h.rope_dims > h.head_dim || h.rope_dims % 2 != 0) {
    fail(ErrorKind::model, "key '{}rope.dimension_count': is {}, must be even and at most the head size {}",
         prefix, h.rope_dims, h.head_dim);
  }
  h.rope.base = rope_base(file, prefix + "rope.freq_base");
  h.rope_local = h.rope;
  // Older files have another key, and those without a type mean linear scaling.
  const std::string old_key = prefix + "rope.scale_linear";
  const std::string key = file.has(old_key) ? old_key : prefix + "rope.scaling.factor";
  const std::string_view type =
      file.get_string(prefix + "rope.scaling.type", file.has(key) ? "linear" : "none");
  const bool longrope = type == "longrope" && accounts_for(architecture, "rope.scaling.type");
  if (type != "none" && type != "linear" && !longrope) {
    fail(ErrorKind::model,
         "key '{}rope.scaling.type': {} is not available in this build for this architecture; none, linear "
         "and "
         "factors in the file are",
         prefix, gguf::quoted(type));
  }
  const bool scaled = type == "linear" || (longrope && file.has(key));
  const float factor = scaled ? within(file, key, 1e-3F, 1e6F, {}) : 1.0F;
  h.rope.scale = 1.0F / factor;
}

}  // namespace

float rope_base(const gguf::Reader& file, const std::string& key) {
  return within(file, key, 1.0F, 1e12F, 10000.0F);
}

Hyperparameters read_common(const gguf::Reader& file, const Architecture& architecture) {
  const std::string prefix = std::string(architecture.name) + ".";
  refuse_unknown(file, architecture);
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
  read_rope(file, architecture, h);
  return h;
}

}  // namespace retro::model
