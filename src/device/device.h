// What the graph asks of a device: memory, the operations of op_args.h, and the optimizer's arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "device/op_args.h"

namespace retro::device {

/// Parameters of AdamW (Loshchilov and Hutter 2019), for one flat buffer.
struct AdamWArgs {
  std::span<float> weights;
  std::span<const float> gradients;
  std::span<float> m;
  std::span<float> v;
  float lr = 0;
  float beta1 = 0;
  float beta2 = 0;
  float eps = 0;
  float weight_decay = 0;
  float gradient_scale = 1;  // the clip factor
  int64_t step = 1;          // 1-based, for the bias correction
};

struct SgdArgs {
  std::span<float> weights;
  std::span<const float> gradients;
  float lr = 0;
  float weight_decay = 0;
  float gradient_scale = 1;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;
  /// Why this device cannot run `op`, or nothing when it can.
  virtual std::optional<std::string> unsupported(const OpArgs& op) const = 0;
  /// Zeroed memory, aligned to 64 bytes. Throws Error(device) naming `what`, bytes and the lever to pull.
  virtual void* allocate(size_t bytes, const char* what) = 0;
  virtual void release(void* memory, size_t bytes) = 0;

  virtual void run(const OpArgs& op, const PassArgs& pass) = 0;

  /// Sum of squares in double over fixed blocks: the same bits whatever the threads. Not finite where a value
  /// is not.
  virtual double sum_of_squares(std::span<const float> values) = 0;
  virtual void adamw(const AdamWArgs& args) = 0;
  virtual void sgd(const SgdArgs& args) = 0;
};

/// Bytes that make_cpu_device itself takes for its threads.
int64_t cpu_scratch_bytes(int threads);

/// The host's own cores. `threads` >= 1.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace retro::device
