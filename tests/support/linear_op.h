// The linear operation with its operands, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cpu/linear.h"
#include "tests/reference/linear_ref.h"
#include "tests/support/linear_case.h"

namespace retro::test {

struct LinearSize {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  int64_t rank = 0;
};

std::string name_of(const LinearSize& size);

/// All operands of a forward and a backward pass. Outputs are NaN, and what is added to is filled.
struct LinearOp {
  LinearOp(const LinearSize& size, device::DType weight, device::DType lora, Fill fill, float scale);

  /// Rows [begin, end) alone.
  void forward(device::cpu::Workspace& workspace, int64_t begin, int64_t end);
  void backward(device::cpu::Workspace& workspace, bool accumulate, int64_t begin, int64_t end);
  void forward(device::cpu::Workspace& workspace) { forward(workspace, 0, size.rows); }
  void backward(device::cpu::Workspace& workspace, bool accumulate) {
    backward(workspace, accumulate, 0, size.rows);
  }

  LinearInput input() const;
  /// y, u, dx, du, da, dbt, one behind the other.
  std::vector<float> outputs() const;

  LinearSize size;
  device::DType lora_dtype;
  float scale;
  TestWeight w;
  TestWeight a;
  TestWeight bt;
  TestMatrix x;
  TestMatrix dy;
  TestMatrix y;
  TestMatrix u;
  TestMatrix dx;
  TestMatrix du;
  TestMatrix da;
  TestMatrix dbt;

 private:
  device::Lora lora() const;
};

}  // namespace retro::test
