// The tables of numbers that the code book formats look their values up in.
//
// An entry of a grid is a point of 8 (or 4) coordinates, a byte each, the first in the lowest byte.
#pragma once

#include <array>
#include <cstdint>

namespace retro::tensor {

/// IQ4_NL and IQ4_XS: 16 levels, closer together around zero.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/// MXFP4 and NVFP4: twice the numbers of 1 sign, 2 exponent and 1 fraction bit.
inline constexpr int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

extern const std::array<uint64_t, 256> kIq2XxsGrid;  // coordinates 8, 25, 43
extern const std::array<uint64_t, 512> kIq2XsGrid;
extern const std::array<uint64_t, 1024> kIq2SGrid;
extern const std::array<uint32_t, 256> kIq3XxsGrid;  // 4, 12, … 52, 62
extern const std::array<uint32_t, 512> kIq3SGrid;    // 1, 3, … 15
/// Coordinates -1, 0, 1, kept as 8·(c + 1), so that the shift of an eighth is added to whole numbers.
extern const std::array<uint64_t, 2048> kIq1Grid;

}  // namespace retro::tensor
