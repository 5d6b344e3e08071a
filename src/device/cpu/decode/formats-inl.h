// All decoders.

#if defined(RETRO_DEVICE_CPU_DECODE_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETRO_DEVICE_CPU_DECODE_FORMATS_INL_H_
#undef RETRO_DEVICE_CPU_DECODE_FORMATS_INL_H_
#else
#define RETRO_DEVICE_CPU_DECODE_FORMATS_INL_H_
#endif

#include "device/cpu/decode/few_bits-inl.h"
#include "device/cpu/decode/grid-inl.h"
#include "device/cpu/decode/iq1-inl.h"
#include "device/cpu/decode/levels-inl.h"
#include "device/cpu/decode/plain-inl.h"
#include "device/cpu/decode/q4_0-inl.h"
#include "device/cpu/decode/q4_1-inl.h"
#include "device/cpu/decode/q4_k-inl.h"
#include "device/cpu/decode/q5_0-inl.h"
#include "device/cpu/decode/q5_1-inl.h"
#include "device/cpu/decode/q5_k-inl.h"
#include "device/cpu/decode/q6_k-inl.h"
#include "device/cpu/decode/q8_0-inl.h"
#include "device/cpu/decode/tq1_0-inl.h"
#include "device/cpu/decode/two_bits-inl.h"

#endif
