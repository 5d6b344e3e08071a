// Keys and values into the carry, and the carry's gradients back to the rows of a pass.
#include <cstring>

#include "device/cpu/convert_row.h"
#include "device/cpu/kernels.h"

namespace retro::device::cpu {

void kv_store(const KvStoreArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t to = pass.carry_rows[static_cast<size_t>(r)];
      convert_row(args.k.dtype, row_address(args.k, r), args.carry_k.dtype, row_address(args.carry_k, to),
                  args.k.cols);
      convert_row(args.v.dtype, row_address(args.v, r), args.carry_v.dtype, row_address(args.carry_v, to),
                  args.v.cols);
    }
  });
}

void kv_load_grad(const KvLoadGradArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  const auto bytes = [](const Matrix& m) { return static_cast<size_t>(m.cols) * sizeof(float); };
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t from = pass.carry_rows[static_cast<size_t>(r)];
      std::memcpy(row_address(args.dk, r), row_address(args.carry_dk, from), bytes(args.dk));
      std::memcpy(row_address(args.dv, r), row_address(args.carry_dv, from), bytes(args.dv));
    }
  });
}

}  // namespace retro::device::cpu
