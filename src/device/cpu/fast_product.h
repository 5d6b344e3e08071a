// The products of sampling: LinearArgs::fast.
#pragma once

#include <cstdint>

#include "device/cpu/linear.h"
#include "device/op_args.h"

namespace retro::device::cpu {

/// y = x·Wᵀ of the first `rows` rows, as LinearArgs::fast describes it: from x8 where w has blocks, else from
/// x.
void fast_product(const Matrix& x, const Matrix& x8, int64_t rows, const Weight& w, const Matrix& y,
                  Workspace& workspace) noexcept;

/// The part of it for F32, F16 and BF16 weights.
void plain_product(const Matrix& x, int64_t rows, const Weight& w, const Matrix& y,
                   Workspace& workspace) noexcept;

/// The instruction set that it runs on, as Highway names it: "AVX3_DL".
const char* fast_instruction_set();

}  // namespace retro::device::cpu
