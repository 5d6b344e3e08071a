#include <hwy/targets.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/error.h"
#include "device/cpu/kernels.h"
#include "device/cpu/linear.h"
#include "device/cpu/scratch.h"
#include "device/cpu/supports.h"
#include "device/device.h"

namespace retro::device {
namespace {

/// Zeroed memory, in large pages where it fills several: the products read rows that lie far apart, and in
/// small pages look up more addresses than the processor's tables hold.
void* map_zeroed(size_t bytes) {
  constexpr size_t kLargePage = size_t{2} << 20;
  const size_t spare = bytes >= 4 * kLargePage ? kLargePage : 0;
  void* mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (spare == 0) return mapped;
  auto* begin = static_cast<std::byte*>(mapped);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(begin) % kLargePage) % kLargePage;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t end = (before + bytes + page - 1) / page * page;
  if (before > 0) munmap(begin, before);
  if (end < bytes + spare) munmap(begin + end, bytes + spare - end);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // a wish: without it all works
  return begin + before;
}

void check_processor() {
#if HWY_ARCH_X86
  if ((hwy::SupportedTargets() & (HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL)) == 0) {
    fail(ErrorKind::device,
         "this processor has no AVX2 with FMA, which the CPU kernels need; run on a newer one");
  }
#elif HWY_ARCH_ARM
  if ((hwy::SupportedTargets() & HWY_NEON) == 0) {
    fail(ErrorKind::device, "this processor has no NEON, which the CPU kernels need; run on a newer one");
  }
#else
  fail(ErrorKind::device, "the CPU kernels need an x86 processor with AVX2 and FMA or an Arm one with NEON");
#endif
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : pool_(threads), workspace_(pool_) {
    scratch_bytes_ = cpu::attention_scratch_bytes();
    const size_t bytes = scratch_bytes_ * static_cast<size_t>(pool_.size());
    scratch_ = static_cast<std::byte*>(allocate(bytes, "the scratch memory of the threads"));
  }
  ~CpuDevice() override { release(scratch_, scratch_bytes_ * static_cast<size_t>(pool_.size())); }
  CpuDevice(const CpuDevice&) = delete;
  CpuDevice& operator=(const CpuDevice&) = delete;

  std::string name() const override { return "cpu"; }

  std::optional<std::string> unsupported(const OpArgs& op) const override { return cpu::unsupported(op); }

  void* allocate(size_t bytes, const char* what) override {
    if (bytes == 0) return nullptr;
    void* memory = map_zeroed(bytes);
    if (memory == nullptr) {
      fail(ErrorKind::device,
           "no memory for {} ({} bytes); lower training.micro_batch, or set training.gradient_checkpointing "
           "= true",
           what, bytes);
    }
    return memory;
  }

  void release(void* memory, size_t bytes) override {
    if (memory != nullptr) munmap(memory, bytes);
  }

  void run(const OpArgs& op, const PassArgs& pass) override {
    std::visit([&](const auto& args) { run_op(args, pass); }, op);
  }

  double sum_of_squares(std::span<const float> values) override { return cpu::sum_of_squares(values, pool_); }
  void adamw(const AdamWArgs& args) override { cpu::adamw(args, pool_); }
  void sgd(const SgdArgs& args) override { cpu::sgd(args, pool_); }
  void adamw8(const AdamW8Args& args) override { cpu::adamw8(args, pool_); }
  void gefen(const GefenArgs& args) override { cpu::gefen(args, pool_); }
  void combine(const CombineArgs& args) override { cpu::combine(args, pool_); }

 private:
  cpu::Workers workers() { return {pool_, scratch_, scratch_bytes_}; }

  void run_op(const EmbedArgs& args, const PassArgs& pass) { cpu::embed(args, pass, pool_); }
  void run_op(const RmsNormArgs& args, const PassArgs& pass) { cpu::rms_norm(args, pass, pool_); }
  void run_op(const RmsNormBackArgs& args, const PassArgs& pass) { cpu::rms_norm_back(args, pass, pool_); }
  void run_op(const LinearArgs& args, const PassArgs& pass) { cpu::linear(args, pass.rows, workspace_); }
  void run_op(const LinearBackArgs& args, const PassArgs& pass) {
    cpu::linear_back(args, pass.rows, workspace_);
  }
  void run_op(const WeightGradArgs& args, const PassArgs& pass) {
    cpu::weight_grad(args, pass.rows, workspace_);
  }
  void run_op(const RopeArgs& args, const PassArgs& pass) { cpu::rope(args, pass, pool_); }
  void run_op(const KvStoreArgs& args, const PassArgs& pass) { cpu::kv_store(args, pass, pool_); }
  void run_op(const AttentionArgs& args, const PassArgs& pass) { cpu::attention(args, pass, workers()); }
  void run_op(const AttentionBackArgs& args, const PassArgs& pass) {
    cpu::attention_back(args, pass, workers());
  }
  void run_op(const KvLoadGradArgs& args, const PassArgs& pass) { cpu::kv_load_grad(args, pass, pool_); }
  void run_op(const GatedArgs& args, const PassArgs& pass) { cpu::gated(args, pass, pool_); }
  void run_op(const GatedBackArgs& args, const PassArgs& pass) { cpu::gated_back(args, pass, pool_); }
  void run_op(const AddArgs& args, const PassArgs& pass) { cpu::add(args, pass, pool_); }
  void run_op(const SplitArgs& args, const PassArgs& pass) { cpu::split(args, pass, pool_); }
  void run_op(const CopyArgs& args, const PassArgs& pass) { cpu::copy(args, pass, pool_); }
  void run_op(const ZeroArgs& args, const PassArgs& pass) { cpu::zero(args, pass, pool_); }
  void run_op(const HeadArgs& args, const PassArgs& pass) { cpu::head(args, pass, workspace_); }
  void run_op(const QuantizeArgs& args, const PassArgs& pass) { cpu::quantize(args, pass, pool_); }

  ThreadPool pool_;
  cpu::Workspace workspace_;
  std::byte* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

}  // namespace

int64_t cpu_scratch_bytes(int threads) {
  return threads * static_cast<int64_t>(sizeof(cpu::Scratch) + cpu::attention_scratch_bytes());
}

std::unique_ptr<Device> make_cpu_device(int threads) {
  if (threads < 1) fail(ErrorKind::config, "{} threads; at least 1 is needed", threads);
  check_processor();
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace retro::device
