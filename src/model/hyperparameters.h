// The numbers of a model that its metadata gives, in the field's names.
#pragma once

#include <cstdint>
#include <vector>

#include "device/op_args.h"

namespace retro::model {

/// How a layer's rotary embedding turns: angle(position, i) = position · scale · base^(−2i/dims) /
/// factors[i]; the rotated pair is multiplied by `magnitude`.
struct RopeSettings {
  float base = 10000.0F;
  float scale = 1.0F;                   // 1 / the linear scaling factor
  const float* factors = nullptr;       // [dims / 2], or none
  const float* long_factors = nullptr;  // in place of `factors` where a run's context is longer than
  int32_t original_context = 0;         // this
  float magnitude = 1.0F;

  bool operator==(const RopeSettings&) const = default;
};

struct Hyperparameters {
  int32_t layers = 0;
  int32_t embedding = 0;
  int32_t heads = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t feed_forward = 0;
  int32_t vocabulary = 0;
  int32_t context_length = 0;
  float rms_eps = 0;
  float embedding_scale = 1;
  float attention_scale = 0;
  float attention_softcap = 0;  // of attention scores; 0: none
  float output_softcap = 0;     // of logits; 0: none
  int32_t rope_dims = 0;
  device::RopeStyle rope_style = device::RopeStyle::interleaved;
  RopeSettings rope;           // of full-attention layers
  RopeSettings rope_local;     // of sliding-window layers
  int32_t window = 0;          // keys a sliding-window layer sees; 0: no such layers
  int32_t window_pattern = 0;  // every so many layers one attends fully, the last of each group; 0: none does
  device::Activation activation = device::Activation::silu;

  int64_t q_dim() const { return int64_t{heads} * head_dim; }
  int64_t kv_dim() const { return int64_t{kv_heads} * head_dim; }
  bool slides(int32_t layer) const {
    return window > 0 && (window_pattern == 0 || (layer + 1) % window_pattern != 0);
  }
};

}  // namespace retro::model
