// The matrix kernels against the processor's peak, on one thread, at the shapes of real models.
//
//   retrograd-bench kernels [--filter TEXT] [--target NAME]
//
// TEXT: a part of "model format direction", as "gemma Q6_K back". NAME: an instruction set, as AVX2.
// "fast" are the products of sampling, whose integer sums can pass the peak of f32.
// The peak is measured in turn with each kernel, by the thread's processor time; the share is the median of
// the ratios. Weights rotate among copies larger than a core's caches.
#include "device/cpu/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "bench/commands.h"
#include "bench/peak.h"
#include "device/cpu/fast_product.h"
#include "device/cpu/linear.h"
#include "device/device.h"
#include "tests/support/cpu_targets.h"
#include "tests/support/random_weights.h"

namespace retro::bench {
namespace {

using tensor::DType;

struct Shape {
  const char* model;
  int64_t out;
  int64_t in;
  DType dtype;
};

constexpr std::array kShapes = {
    Shape{"smollm2", 576, 576, DType::Q4_1},    Shape{"smollm2", 192, 576, DType::Q4_1},
    Shape{"smollm2", 1536, 576, DType::Q4_1},   Shape{"smollm2", 576, 1536, DType::Q4_1},
    Shape{"smollm2", 49152, 576, DType::Q8_0},  Shape{"gemma", 1024, 640, DType::Q5_0},
    Shape{"gemma", 640, 1024, DType::Q4_K},     Shape{"gemma", 2048, 640, DType::Q5_0},
    Shape{"gemma", 640, 2048, DType::Q6_K},     Shape{"gemma", 262144, 640, DType::Q8_0},
    Shape{"lora", 8, 576, DType::F32},          Shape{"lora", 8, 2048, DType::F32},
    Shape{"plain", 576, 1536, DType::F32},      Shape{"plain", 576, 1536, DType::F16},
    Shape{"plain", 576, 1536, DType::BF16},     Shape{"other", 1536, 576, DType::Q4_0},
    Shape{"other", 1536, 576, DType::Q5_1},     Shape{"other", 1536, 1024, DType::Q5_K},
    Shape{"other", 1536, 1024, DType::Q2_K},    Shape{"other", 1536, 1024, DType::Q3_K},
    Shape{"other", 1536, 1024, DType::IQ1_S},   Shape{"other", 1536, 1024, DType::IQ1_M},
    Shape{"other", 1536, 1024, DType::IQ2_XXS}, Shape{"other", 1536, 1024, DType::IQ2_XS},
    Shape{"other", 1536, 1024, DType::IQ2_S},   Shape{"other", 1536, 1024, DType::IQ3_XXS},
    Shape{"other", 1536, 1024, DType::IQ3_S},   Shape{"other", 1536, 1024, DType::IQ4_NL},
    Shape{"other", 1536, 1024, DType::IQ4_XS},  Shape{"other", 1536, 1024, DType::TQ1_0},
    Shape{"other", 1536, 1024, DType::TQ2_0},   Shape{"other", 1536, 1024, DType::MXFP4},
    Shape{"other", 1536, 1024, DType::NVFP4},   Shape{"other", 1536, 1024, DType::Q1_0},
    Shape{"other", 1536, 1024, DType::Q2_0},
};
constexpr std::array<int64_t, 5> kRows = {1, 8, 64, 256, 512};
constexpr int64_t kMostWeights = 64 << 20;  // bytes of all copies; a vocabulary is cut to fit

enum class Direction { forward, fast, back, gradient };
constexpr std::array kDirections = {Direction::forward, Direction::fast, Direction::back,
                                    Direction::gradient};

const char* name_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::fast:
      return "fast";
    case Direction::back:
      return "back";
    default:
      return "gradient";
  }
}

class Bench {
 public:
  Bench(const Shape& shape, Direction direction) : shape_(shape), direction_(direction) {
    const int64_t row = tensor::row_bytes(shape.dtype, shape.in);
    shape_.out = std::min(shape.out, kMostWeights / row / 32 * 32);
    copies_ = std::clamp<int64_t>(kMostWeights / (row * shape_.out) / 2, 1, 16);
    bytes_ = test::random_weights(shape.dtype, shape_.out * copies_, shape.in, 0.05F, 1, "bench");
    const int64_t most = kRows.back();
    // As in a run, where all activations share one allocation.
    memory_ = static_cast<float*>(device_->allocate(bytes_of_activations(), "activations"));
    x_ = memory_;
    y_ = memory_ + (most * shape_.in + 1023) / 1024 * 1024;
    fill(x_, most * shape_.in);
    fill(y_, most * shape_.out);
    if (direction != Direction::fast || tensor::dtype_info(shape.dtype).block_elements == 1) return;
    const int64_t cols = device::quantized_columns(shape_.in);
    x8_ = {y_ + (most * shape_.out + 15) / 16 * 16, cols, cols, DType::F32};
    device::PassArgs all;
    all.rows = static_cast<int32_t>(most);
    device::cpu::quantize({{x_, shape_.in, shape_.in, DType::F32}, x8_}, all, pool_);
  }
  ~Bench() { device_->release(memory_, bytes_of_activations()); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  double operations(int64_t rows) const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(shape_.in) * static_cast<double>(shape_.out);
  }

  void run(int64_t rows) {
    const int64_t size = tensor::row_bytes(shape_.dtype, shape_.in) * shape_.out;
    const device::Weight w = {bytes_.data() + size * (turn_++ % copies_), shape_.out, shape_.in,
                              shape_.dtype};
    if (direction_ == Direction::forward) {
      device::cpu::product_nt(x_, w.cols, rows, w, y_, w.rows, false, workspace_);
    } else if (direction_ == Direction::fast) {
      const device::Matrix x = {x_, w.cols, w.cols, DType::F32};
      device::cpu::fast_product(x, x8_, rows, w, {y_, w.rows, w.rows, DType::F32}, workspace_);
    } else if (direction_ == Direction::back) {
      device::cpu::product_nn(y_, w.rows, rows, w, x_, w.cols, false, workspace_);
    } else {
      device::cpu::product_tn(y_, w.rows, w.rows, x_, w.cols, w.cols, rows,
                              reinterpret_cast<float*>(bytes_.data()), w.cols, workspace_);
    }
  }

  /// The median share of the peak.
  double share(int64_t rows) {
    run(rows);
    std::vector<double> shares;
    for (int i = 0; i < 9; ++i) {
      const double peak = fma_peak(1e-3);
      const double start = thread_seconds();
      double done = 0;
      double elapsed = 0;
      do {
        run(rows);
        done += operations(rows);
        elapsed = thread_seconds() - start;
      } while (elapsed < 5e-3);
      shares.push_back(done / elapsed / (0.5 * (peak + fma_peak(1e-3))));
    }
    std::ranges::nth_element(shares, shares.begin() + 4);
    return shares[4];
  }

  const Shape& shape() const { return shape_; }

 private:
  size_t bytes_of_activations() const {
    const int64_t floats =
        kRows.back() * (shape_.in + shape_.out + device::quantized_columns(shape_.in)) + 2048;
    return static_cast<size_t>(std::max<int64_t>(floats * 4, 16 << 20));
  }
  static void fill(float* values, int64_t count) {
    const RandomStream random(1, "bench");
    for (int64_t i = 0; i < count; ++i) values[i] = random.uniform(static_cast<uint64_t>(i)) - 0.5F;
  }

  Shape shape_;
  Direction direction_;
  int64_t copies_ = 1;
  int64_t turn_ = 0;
  std::vector<std::byte> bytes_;
  std::unique_ptr<device::Device> device_ = device::make_cpu_device(1);
  float* memory_ = nullptr;
  float* x_ = nullptr;
  float* y_ = nullptr;
  device::Matrix x8_;  // the rows of x for the fast product, where weights have blocks
  ThreadPool pool_{1};
  device::cpu::Workspace workspace_{pool_};
};

nlohmann::ordered_json run_all(const std::string& filter) {
  nlohmann::ordered_json json = {{"instruction_set", device::cpu::instruction_set()}};
  fmt::print("{}, peak {:.1f} GFLOP/s; share of it in % by rows\n", device::cpu::instruction_set(),
             fma_peak(0.1) / 1e9);
  fmt::print("{:44}", "");
  for (const int64_t rows : kRows) fmt::print("{:>7}", rows);
  fmt::print("\n");
  for (const Shape& shape : kShapes) {
    for (const Direction direction : kDirections) {
      // The gradient of a weight is taken of LoRA's alone.
      if (direction == Direction::gradient && shape.out != 8) continue;
      const std::string name =
          fmt::format("{} {} {}", shape.model, tensor::dtype_name(shape.dtype), name_of(direction));
      if (name.find(filter) == std::string::npos) continue;
      Bench bench(shape, direction);
      fmt::print("{:28} {:>6} x {:<6}", name, bench.shape().out, shape.in);
      nlohmann::ordered_json row = {{"name", name}, {"out", bench.shape().out}, {"in", shape.in}};
      for (const int64_t rows : kRows) {
        const double share = bench.share(rows);
        row["share_of_fma_peak"][std::to_string(rows)] = share;
        fmt::print("{:7.1f}", 100 * share);
        std::fflush(stdout);
      }
      json["rows"].push_back(std::move(row));
      fmt::print("\n");
    }
  }
  return json;
}

}  // namespace

nlohmann::ordered_json run_kernels(const std::string& filter, const std::string& target) {
  if (target.empty()) return run_all(filter);
  for (const int64_t candidate : test::cpu_targets()) {
    if (test::cpu_target_name(candidate) != target) continue;
    const test::OnTarget on(candidate);
    return run_all(filter);
  }
  std::string known;
  for (const int64_t candidate : test::cpu_targets())
    known += std::string(" ") + test::cpu_target_name(candidate);
  fail(ErrorKind::config, "this machine has no {}; it has{}", target, known);
}

}  // namespace retro::bench
