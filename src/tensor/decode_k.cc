// The K formats: 256 values with a scale (and minimum) for each 16 or 32, themselves whole numbers times a
// scale.
#include "tensor/block_decoders.h"
#include "tensor/half.h"

namespace retro::tensor {
namespace {

/// The two low bits of value i of 256: Q2_K, Q3_K.
int two_bits(const uint8_t (&quants)[64], int i) {
  return (quants[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
}

}  // namespace

void decode(const BlockQ2_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min_scale = f16_to_f32(block.min_scale);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(block.scales[group] & 15);
    const float group_min = min_scale * static_cast<float>(block.scales[group] >> 4);
    for (int i = 16 * group; i < 16 * group + 16; ++i) {
      out[i] = group_scale * static_cast<float>(two_bits(block.quants, i)) - group_min;
    }
  }
}

void decode(const BlockQ3_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  int8_t scales[16];
  unpack_scales_q3_k(block.scales, scales);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(scales[group]);
    for (int i = 16 * group; i < 16 * group + 16; ++i) {
      const int high = (block.high_bits[i % 32] >> (i / 32)) & 1;
      out[i] = group_scale * static_cast<float>(two_bits(block.quants, i) + 4 * high - 4);
    }
  }
}

void decode(const BlockQ4_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min_scale = f16_to_f32(block.min_scale);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin packed = unpack_scale_min(block.scales, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_min = min_scale * static_cast<float>(packed.min);
    const uint8_t* quants = block.quants + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      out[32 * group + i] = group_scale * static_cast<float>((quants[i] >> shift) & 15) - group_min;
    }
  }
}

void decode(const BlockQ5_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  const float min_scale = f16_to_f32(block.min_scale);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin packed = unpack_scale_min(block.scales, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_min = min_scale * static_cast<float>(packed.min);
    const uint8_t* quants = block.quants + 32 * (group / 2);
    const int shift = 4 * (group % 2);
    for (int i = 0; i < 32; ++i) {
      const int q = ((quants[i] >> shift) & 15) | (((block.high_bits[i] >> group) & 1) << 4);
      out[32 * group + i] = group_scale * static_cast<float>(q) - group_min;
    }
  }
}

void decode(const BlockQ6_K& block, float* out) {
  const float scale = f16_to_f32(block.scale);
  for (int run = 0; run < 8; ++run) {
    const int half = run / 4;
    const uint8_t* low = block.low_bits + 64 * half + 32 * (run % 2);
    const uint8_t* high = block.high_bits + 32 * half;
    const int low_shift = run % 4 < 2 ? 0 : 4;
    const int high_shift = 2 * (run % 4);
    for (int i = 0; i < 32; ++i) {
      const int q = ((low[i] >> low_shift) & 15) | (((high[i] >> high_shift) & 3) << 4);
      const int group = 2 * run + i / 16;
      const float group_scale = scale * static_cast<float>(block.scales[group]);
      out[32 * run + i] = group_scale * static_cast<float>(q - 32);
    }
  }
}

}  // namespace retro::tensor
