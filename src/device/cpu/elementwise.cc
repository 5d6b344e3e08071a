// Sums, copies between dtypes, and zeros.
#include "device/cpu/targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

#include <cstring>

#include "device/cpu/convert_row.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vector_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace retro::device::cpu {
namespace HWY_NAMESPACE {

void add_rows(const AddArgs& args, int64_t begin, int64_t end) {
  const auto cols = static_cast<size_t>(args.out.cols);
  for (int64_t r = begin; r < end; ++r) {
    const float* a = args.a.f32() + r * args.a.stride;
    const float* b = args.b.f32() + r * args.b.stride;
    float* out = args.out.f32() + r * args.out.stride;
    for (size_t i = 0; i < cols; i += kVectorLanes) {
      store_n(hn::Add(load_n(a + i, cols - i), load_n(b + i, cols - i)), out + i, cols - i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace retro::device::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retro::device::cpu {

HWY_EXPORT(add_rows);

void add(const AddArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(add_rows)(args, begin, end);
  });
}

void split(const SplitArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* column = args.whole.f32() + r * args.whole.stride;
      for (const Matrix& part : args.parts) {
        if (part.data == nullptr) break;
        float* row = part.f32() + r * part.stride;
        std::memcpy(args.join ? column : row, args.join ? row : column,
                    static_cast<size_t>(part.cols) * sizeof(float));
        column += part.cols;
      }
    }
  });
}

void copy(const CopyArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      convert_row(args.from.dtype, row_address(args.from, r), args.to.dtype, row_address(args.to, r),
                  args.to.cols);
    }
  });
}

void zero(const ZeroArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  const auto bytes = static_cast<size_t>(args.to.cols * float_bytes(args.to.dtype));
  pool.ranges(args.rows == 0 ? pass.rows : args.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) std::memset(row_address(args.to, r), 0, bytes);
  });
}

}  // namespace retro::device::cpu
#endif  // HWY_ONCE
