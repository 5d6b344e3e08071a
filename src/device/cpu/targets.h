// Which instruction sets the kernels are compiled for: include before any Highway header.
//
// Values must not depend on the vector width, so only sets with a fused multiply-add and a width known at
// compile time qualify; the plain target that Highway always adds is compiled but never run (see
// make_cpu_device).
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_PPC8 | HWY_WASM)
#endif
