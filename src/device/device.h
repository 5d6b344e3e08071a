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

/// AdamW with both moments in 8 bits (Dettmers et al. 2022): codes of the dynamic maps of 8 bits, signed for
/// m and unsigned for v, with one f32 scale, the largest magnitude, for each block of kBlock weights. A
/// second moment above 0 is never stored as 0. The step itself uses the moments before they are rounded.
struct AdamW8Args {
  static constexpr int64_t kBlock = 256;

  std::span<float> weights;
  std::span<const float> gradients;
  std::span<uint8_t> m;
  std::span<uint8_t> v;
  std::span<float> m_scale;  // a block each
  std::span<float> v_scale;
  float lr = 0;
  float beta1 = 0;
  float beta2 = 0;
  float eps = 0;
  float weight_decay = 0;
  float gradient_scale = 1;
  int64_t step = 1;
};

/// Adam with one second moment for each block of `block` weights, the running mean of its mean squared
/// gradient. The first moment is f32 in `m` or, where that is empty, 8 bits in `codes`: code c is
/// (c - 128) / 127 of the block's largest magnitude, which is in `scale`.
struct GefenArgs {
  std::span<float> weights;
  std::span<const float> gradients;
  std::span<float> m;
  std::span<uint8_t> codes;
  std::span<float> scale;  // a block each, as v
  std::span<float> v;
  int64_t block = 0;
  float lr = 0;
  float beta1 = 0;
  float beta2 = 0;
  float eps = 0;
  float weight_decay = 0;
  float gradient_scale = 1;
  int64_t step = 1;
};

/// out = alpha·a + beta·b, element by element; out may be a or b.
struct CombineArgs {
  std::span<float> out;
  std::span<const float> a;
  std::span<const float> b;
  float alpha = 1;
  float beta = 0;
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
  virtual void adamw8(const AdamW8Args& args) = 0;
  virtual void gefen(const GefenArgs& args) = 0;
  virtual void combine(const CombineArgs& args) = 0;
};

/// Bytes that make_cpu_device itself takes for its threads.
int64_t cpu_scratch_bytes(int threads);

/// The host's own cores. `threads` >= 1.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace retro::device
