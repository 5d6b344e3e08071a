// Token embeddings: rows of a table of any dtype, decoded one by one.
#include "device/cpu/kernels.h"
#include "tensor/dequantize.h"

namespace retro::device::cpu {

void embed(const EmbedArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept {
  const int64_t cols = args.table.cols;
  const int64_t bytes = tensor::row_bytes(args.table.dtype, cols);
  const auto* table = static_cast<const std::byte*>(args.table.data);
  pool.ranges(pass.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* out = args.out.f32() + r * args.out.stride;
      tensor::dequantize_row(args.table.dtype, table + pass.tokens[static_cast<size_t>(r)] * bytes, out,
                             cols);
      if (args.scale == 1) continue;
      for (int64_t i = 0; i < cols; ++i) out[i] *= args.scale;
    }
  });
}

}  // namespace retro::device::cpu
