#include "profile/watch.h"

#include <algorithm>
#include <chrono>

#include "base/memory_info.h"

namespace retro::profile {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double products(const device::Weight& w, const device::Lora& lora, double rows) {
  const auto in = static_cast<double>(w.cols);
  const auto out = static_cast<double>(w.rows);
  return 2 * rows * (in * out + lora.rank * (in + out));
}

/// Operations that an operation needs, by the formula, not counting what a kernel makes twice. Elementwise
/// work is left out.
struct Count {
  const device::PassArgs& pass;

  double operator()(const device::LinearArgs& a) const {
    return products(a.w, a.lora, pass.rows) -
           (a.y.data == nullptr ? 2.0 * pass.rows * a.w.cols * a.w.rows : 0);
  }
  double operator()(const device::LinearBackArgs& a) const {
    const double input = a.dx.data == nullptr ? 0 : products(a.w, a.lora, pass.rows);
    return input + 2.0 * pass.rows * a.lora.rank * static_cast<double>(a.w.cols + a.w.rows);
  }
  double operator()(const device::HeadArgs& a) const {
    const double one = 2.0 * static_cast<double>(pass.queries.size()) * static_cast<double>(a.w.cols) *
                       static_cast<double>(a.w.rows);
    return pass.head_mode == device::HeadMode::backward ? 2 * one : one;
  }
  double operator()(const device::AttentionArgs& a) const { return attention(a, 2); }
  double operator()(const device::AttentionBackArgs& a) const { return attention(a.forward, 5); }
  template <typename Args>
  double operator()(const Args&) const {
    return 0;
  }

  /// `each` products of a head's width for every pair of row and key.
  double attention(const device::AttentionArgs& a, int each) const {
    double pairs = 0;
    for (const int32_t position : pass.positions)
      pairs += a.window > 0 ? std::min(position + 1, a.window) : position + 1;
    return 2.0 * each * pairs * a.heads * a.head_dim;
  }
};

/// Bytes of weights that an operation reads.
struct WeightBytes {
  double of(const device::Weight& w) const {
    return static_cast<double>(tensor::row_bytes(w.dtype, w.cols)) * static_cast<double>(w.rows);
  }
  double operator()(const device::LinearArgs& a) const { return of(a.w); }
  double operator()(const device::HeadArgs& a) const { return of(a.w); }
  template <typename Args>
  double operator()(const Args&) const {
    return 0;
  }
};

template <typename Args>
constexpr bool kBackward =
    std::is_same_v<Args, device::RmsNormBackArgs> || std::is_same_v<Args, device::LinearBackArgs> ||
    std::is_same_v<Args, device::AttentionBackArgs> || std::is_same_v<Args, device::KvLoadGradArgs> ||
    std::is_same_v<Args, device::GatedBackArgs>;

}  // namespace

/// Passes everything on to the device of the run.
class WatchedDevice final : public device::Device {
 public:
  WatchedDevice(std::unique_ptr<device::Device> device, Watch& watch)
      : device_(std::move(device)), watch_(watch) {}

  std::string name() const override { return device_->name(); }
  std::optional<std::string> unsupported(const device::OpArgs& op) const override {
    return device_->unsupported(op);
  }
  void* allocate(size_t bytes, const char* what) override {
    void* memory = device_->allocate(bytes, what);
    const auto size = static_cast<int64_t>(bytes);
    watch_.held_ += size;
    by_buffer_[what] += size;
    buffers_.emplace_back(memory, what);
    watch_.peak_bytes = std::max(watch_.peak_bytes, watch_.held_);
    if (watch_.phase_ == static_cast<int>(run::Phase::optimizer))
      watch_.step_peak_bytes = std::max(watch_.step_peak_bytes, watch_.held_);
    int64_t& peak = watch_.peak_by_buffer[what];
    peak = std::max(peak, by_buffer_[what]);
    return memory;
  }
  void release(void* memory, size_t bytes) override {
    const auto found = std::ranges::find(buffers_, memory, &std::pair<void*, std::string>::first);
    if (found != buffers_.end()) {
      by_buffer_[found->second] -= static_cast<int64_t>(bytes);
      buffers_.erase(found);
    }
    watch_.held_ -= static_cast<int64_t>(bytes);
    device_->release(memory, bytes);
  }
  void run(const device::OpArgs& op, const device::PassArgs& pass) override {
    const double start = now();
    device_->run(op, pass);
    Work* work = work_of(op, pass);
    if (work == nullptr) return;
    work->seconds += now() - start;
    work->operations += std::visit(Count{pass}, op);
    work->bytes += std::visit(WeightBytes{}, op);
  }
  double sum_of_squares(std::span<const float> values) override {
    double sum = 0;
    update([&] { sum = device_->sum_of_squares(values); });
    return sum;
  }
  void adamw(const device::AdamWArgs& args) override {
    update([&] { device_->adamw(args); });
  }
  void sgd(const device::SgdArgs& args) override {
    update([&] { device_->sgd(args); });
  }

 private:
  Work* work_of(const device::OpArgs& op, const device::PassArgs& pass) {
    if (watch_.phase_ == static_cast<int>(run::Phase::generation))
      return pass.rows == static_cast<int32_t>(pass.queries.size()) ? &watch_.decode : &watch_.prefill;
    if (watch_.phase_ != static_cast<int>(run::Phase::optimizer)) return nullptr;
    if (const auto* head = std::get_if<device::HeadArgs>(&op); head != nullptr)
      return pass.head_mode == device::HeadMode::backward ? &watch_.backward : &watch_.forward;
    const bool back =
        std::visit([](const auto& args) { return kBackward<std::decay_t<decltype(args)>>; }, op);
    return back ? &watch_.backward : &watch_.forward;
  }
  template <typename Call>
  void update(const Call& call) {
    const double start = now();
    call();
    watch_.weights.seconds += now() - start;
  }

  std::unique_ptr<device::Device> device_;
  Watch& watch_;
  std::map<std::string, int64_t> by_buffer_;
  std::vector<std::pair<void*, std::string>> buffers_;
};

Watch::Watch() : last_(now()) {}

std::unique_ptr<device::Device> Watch::wrap(std::unique_ptr<device::Device> device) {
  return std::make_unique<WatchedDevice>(std::move(device), *this);
}

void Watch::milestone(std::string_view name) {
  const double at = now();
  milestones.push_back({std::string(name), at - last_, resident_bytes()});
  last_ = at;
}

void Watch::planned(std::string_view what, std::span<const engine::MemoryPart> planned) {
  parts.emplace_back(what, std::vector<engine::MemoryPart>(planned.begin(), planned.end()));
}

void Watch::begin(run::Phase phase) {
  phase_ = static_cast<int>(phase);
  if (phase == run::Phase::optimizer) step_peak_bytes = std::max(step_peak_bytes, held_);
}

void Watch::end(run::Phase phase, double seconds) {
  phase_seconds[static_cast<size_t>(phase)] += seconds;
  phase_ = -1;
}

void Watch::updated(const std::map<std::string, double>& metrics, double seconds) {
  updates.push_back({metrics, seconds});
}

}  // namespace retro::profile
