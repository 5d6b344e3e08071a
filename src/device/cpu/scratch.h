// The memory a worker needs for a product: decoded panels and what is between a block and a panel.
#pragma once

#include <cstdint>

namespace retro::device::cpu {

constexpr int kMaxWidth = 32;     // columns of a register tile
constexpr int kMaxTileRows = 12;  // rows of a register tile

/// Depth of a panel: a multiple of 32, with room for a superblock of 256. Loading and storing a tile's sums
/// is then a hundredth of the work.
constexpr int kMaxDepth = 320;
/// A low-rank term of up to this rank is summed in the registers behind the last block.
constexpr int kMaxTailDepth = 64;
constexpr int kPanelDepth = kMaxDepth + kMaxTailDepth;
/// Columns decoded before the tokens run over them: a panel of 192 KiB, which any L2 cache holds.
constexpr int kGroupColumns = 128;

constexpr int kRowGroup = 16;       // rows of W transposed together
constexpr int kMinScaleGroup = 16;  // weights that share a scale, at least

constexpr int kGatherRows = 256;            // rows of A put side by side
constexpr int kRowStride = kMaxDepth + 16;  // from one to the next: an odd number of cache lines

constexpr int kStrip8 = 32;   // outputs of a strip of 8-bit quants
constexpr int kDepth8 = 640;  // weights of each: with the rows of x beside it, a strip fits in L1
constexpr int kStep8Bytes = 4 * kStrip8;

/// A strip of W for the 8-bit products: groups of 16 or 32 weights, and quants in steps of 4 weights of each
/// output.
struct alignas(64) Panel8 {
  int8_t quants[kStrip8 * kDepth8];
  float scales[kDepth8 / kMinScaleGroup * kStrip8];
  float minima[kDepth8 / kMinScaleGroup * kStrip8];
  int8_t rows[kRowGroup * 32];                                     // 32 quants of each row
  uint16_t halves[2 * kDepth8 / 32 * kRowGroup];                   // what a row's scales are made of
  uint8_t small_scales[kDepth8 / kMinScaleGroup * kRowGroup * 2];  // 16 bytes of each row
  float edge[kMaxTileRows * kStrip8];
};

struct alignas(64) Scratch {
  float panel[kGroupColumns * kPanelDepth];
  float values[kRowGroup * kMaxDepth];
  float scales[kRowGroup * kMaxDepth / kMinScaleGroup];
  float minima[kRowGroup * kMaxDepth / kMinScaleGroup];
  float rows[kGatherRows * kRowStride];
  float edge[kMaxTileRows * kMaxWidth];
  int8_t quants[kRowGroup * kMaxDepth];
  int8_t transposed[kRowGroup * 32];
  Panel8 panel8;
};

}  // namespace retro::device::cpu
