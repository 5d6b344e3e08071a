// A device that says where its time goes, by kind of operation.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/peak.h"
#include "device/device.h"

namespace retro::bench {

class TimedDevice final : public device::Device {
 public:
  explicit TimedDevice(std::unique_ptr<device::Device> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  std::optional<std::string> unsupported(const device::OpArgs& op) const override {
    return device_->unsupported(op);
  }
  void* allocate(size_t bytes, const char* what) override { return device_->allocate(bytes, what); }
  void release(void* memory, size_t bytes) override { device_->release(memory, bytes); }
  void run(const device::OpArgs& op, const device::PassArgs& pass) override {
    timed(op.index(), [&] { device_->run(op, pass); });
  }
  double sum_of_squares(std::span<const float> values) override {
    double sum = 0;
    timed(kOptimizer, [&] { sum = device_->sum_of_squares(values); });
    return sum;
  }
  void adamw(const device::AdamWArgs& args) override {
    timed(kOptimizer, [&] { device_->adamw(args); });
  }
  void sgd(const device::SgdArgs& args) override {
    timed(kOptimizer, [&] { device_->sgd(args); });
  }
  void adamw8(const device::AdamW8Args& args) override {
    timed(kOptimizer, [&] { device_->adamw8(args); });
  }
  void gefen(const device::GefenArgs& args) override {
    timed(kOptimizer, [&] { device_->gefen(args); });
  }
  void combine(const device::CombineArgs& args) override {
    timed(kOptimizer, [&] { device_->combine(args); });
  }

  void clear() { seconds_.fill(0); }
  /// Name and seconds since clear(), the longest first.
  std::vector<std::pair<std::string, double>> times() const;

 private:
  static constexpr size_t kOptimizer = std::variant_size_v<device::OpArgs>;

  template <typename Work>
  void timed(size_t kind, const Work& work) {
    const double start = wall_seconds();
    work();
    seconds_[kind] += wall_seconds() - start;
  }

  std::unique_ptr<device::Device> device_;
  std::array<double, kOptimizer + 1> seconds_ = {};
};

}  // namespace retro::bench
