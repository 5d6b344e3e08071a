// What an optimizer does with a clipped gradient: one row an optimizer, each in a file of its own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/optimizer.h"

namespace retro::engine {

/// One step: the gradient is to be multiplied by `scale`.
struct Update {
  std::span<float> weights;
  std::span<const float> gradient;
  double lr = 0;
  float scale = 1;
  int64_t step = 1;
};

using StateBuffers = std::vector<std::pair<std::string, std::span<float>>>;

class UpdateRule {
 public:
  UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;
  virtual ~UpdateRule() = default;

  virtual void update(const Update& update) = 0;
  /// Everything that the next step depends on but the weights.
  virtual StateBuffers state() = 0;
};

struct UpdateRow {
  OptimizerKind kind;
  OptimizerBytes (*bytes)(const OptimizerOptions& options, const std::vector<Parameter>& parameters);
  std::unique_ptr<UpdateRule> (*make)(device::Device& device, const OptimizerOptions& options,
                                      const std::vector<Parameter>& parameters);
};

extern const UpdateRow kAdamW, kSgd, kMuon, kGefen, kAdamW8bit;

/// The moments of AdamW for some of the parameters, side by side in their order; what muon and gefen leave to
/// it.
class AdamWMoments {
 public:
  AdamWMoments(device::Device& device, const OptimizerOptions& options, std::vector<Parameter> parameters);

  static int64_t bytes(const std::vector<Parameter>& parameters);
  void update(const Update& update, double lr);
  /// Appends "PREFIX.m" and "PREFIX.v", where there are any.
  void append_state(const std::string& prefix, StateBuffers& state);

 private:
  device::Device& device_;
  OptimizerOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<float> m_;
  std::vector<float> v_;
};

inline std::span<float> part(std::span<float> all, int64_t offset, int64_t size) {
  return all.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}
inline std::span<const float> part(std::span<const float> all, int64_t offset, int64_t size) {
  return all.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}
inline std::span<float> part(std::vector<float>& all, int64_t offset, int64_t size) {
  return part(std::span<float>(all), offset, size);
}

/// Codes of 8 bits, kept four to a float so that a checkpoint holds them as it does numbers.
class Codes {
 public:
  static int64_t words(int64_t count) { return (count + 3) / 4; }

  explicit Codes(int64_t count) : words_(static_cast<size_t>(words(count))) {}
  std::span<uint8_t> part(int64_t offset, int64_t size) {
    return {reinterpret_cast<uint8_t*>(words_.data()) + offset, static_cast<size_t>(size)};
  }
  std::span<float> buffer() { return words_; }

 private:
  std::vector<float> words_;
};

/// Elements of all, and blocks of at most `block` when each parameter starts a new one.
int64_t elements(const std::vector<Parameter>& parameters);
int64_t blocks(const std::vector<Parameter>& parameters, int64_t block);

}  // namespace retro::engine
