// The memory a worker needs for a product: decoded panels and what is between a block and a panel.
#pragma once

#include <cstdint>

namespace retro::device::cpu {

constexpr int kMaxWidth = 32;     // columns of a register tile
constexpr int kMaxTileRows = 12;  // rows of a register tile
constexpr int kMaxDepth = 320;    // of a panel; a multiple of 32, and 256 (a superblock) fits
constexpr int kGroupColumns =
    128;                       // columns decoded before the tokens run over them: 160 KiB, a part of any L2
constexpr int kRowGroup = 16;  // rows transposed together
constexpr int kMinScaleGroup = 16;  // weights that share a scale, at least

constexpr int kRowStride = kMaxDepth + 16;  // of gathered rows: an odd number of cache lines
constexpr int kGatherRows = 256;            // rows gathered together

struct alignas(64) Scratch {
  float panel[kGroupColumns * kMaxDepth];
  float values[kRowGroup * kMaxDepth];
  float scales[kRowGroup * kMaxDepth / kMinScaleGroup];
  float minima[kRowGroup * kMaxDepth / kMinScaleGroup];
  float rows[kGatherRows * kRowStride];
  float edge[kMaxTileRows * kMaxWidth];
  int8_t quants[kRowGroup * kMaxDepth];
  int8_t transposed[kRowGroup * 32];
};

}  // namespace retro::device::cpu
