#include "tests/support/linear_op.h"

#include <fmt/format.h>

namespace retro::test {
namespace {

/// The matrix from row `begin` on.
device::Matrix rows_from(const TestMatrix& matrix, int64_t begin) {
  device::Matrix view = matrix.matrix();
  view.data = view.f32() + begin * view.stride;
  return view;
}

}  // namespace

std::string name_of(const LinearSize& size) {
  return fmt::format("rows {} in {} out {} rank {}", size.rows, size.in, size.out, size.rank);
}

LinearOp::LinearOp(const LinearSize& s, device::DType weight, device::DType lora, Fill fill, float lora_scale)
    : size(s),
      lora_dtype(lora),
      scale(lora_scale),
      w(weight, s.out, s.in, fill, 1),
      a(lora, s.rank, s.in, fill, 2),
      bt(lora, s.rank, s.out, fill, 3),
      x(filled(s.rows, s.in, s.in + 2, fill, 4)),
      dy(filled(s.rows, s.out, s.out + 1, fill, 5)),
      y(s.rows, s.out, s.out + 3),
      u(s.rows, s.rank, s.rank + 1),
      dx(filled(s.rows, s.in, s.in + 4, fill, 6)),
      du(s.rows, s.rank, s.rank + 2),
      da(filled(s.rank, s.in, s.in, fill, 7)),
      dbt(filled(s.rank, s.out, s.out, fill, 8)) {}

device::Lora LinearOp::lora() const {
  return {a.weight().data, bt.weight().data, lora_dtype, static_cast<int32_t>(size.rank), scale};
}

void LinearOp::forward(device::cpu::Workspace& workspace, int64_t begin, int64_t end) {
  device::LinearArgs args;
  args.x = rows_from(x, begin);
  args.w = w.weight();
  args.y = rows_from(y, begin);
  args.lora = lora();
  args.u = rows_from(u, begin);
  device::cpu::linear(args, end - begin, workspace);
}

void LinearOp::backward(device::cpu::Workspace& workspace, bool accumulate, int64_t begin, int64_t end) {
  device::LinearBackArgs args;
  args.dy = rows_from(dy, begin);
  args.w = w.weight();
  args.dx = rows_from(dx, begin);
  args.accumulate = accumulate;
  args.lora = lora();
  args.x = rows_from(x, begin);
  args.u = rows_from(u, begin);
  args.du = rows_from(du, begin);
  args.da = da.matrix().f32();
  args.dbt = dbt.matrix().f32();
  device::cpu::linear_back(args, end - begin, workspace);
}

LinearInput LinearOp::input() const {
  return {size.rows, size.in, size.out, size.rank, scale, x.values(), w.doubles(), a.doubles(), bt.doubles()};
}

std::vector<float> LinearOp::outputs() const {
  std::vector<float> all;
  for (const TestMatrix* matrix : {&y, &u, &dx, &du, &da, &dbt}) {
    const std::vector<float> values = floats(*matrix);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace retro::test
