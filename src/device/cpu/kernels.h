// One function an operation of op_args.h. None throws, allocates or depends in its values on the number of
// workers.
#pragma once

#include <cstddef>
#include <span>

#include "base/thread_pool.h"
#include "device/cpu/linear.h"
#include "device/device.h"
#include "device/op_args.h"

namespace retro::device::cpu {

/// The pool and a piece of scratch memory for each of its workers.
struct Workers {
  ThreadPool& pool;
  std::byte* scratch = nullptr;  // size() pieces, aligned to 64 bytes
  size_t scratch_bytes = 0;      // of one piece

  std::byte* scratch_of(int worker) const { return scratch + static_cast<size_t>(worker) * scratch_bytes; }
};

/// What attention needs of a worker's scratch; head_dim may be up to kMaxHeadDim.
constexpr int32_t kMaxHeadDim = 512;
size_t attention_scratch_bytes();

void embed(const EmbedArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void rms_norm(const RmsNormArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void rms_norm_back(const RmsNormBackArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void rope(const RopeArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void kv_store(const KvStoreArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void kv_load_grad(const KvLoadGradArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void attention(const AttentionArgs& args, const PassArgs& pass, const Workers& workers) noexcept;
void attention_back(const AttentionBackArgs& args, const PassArgs& pass, const Workers& workers) noexcept;
void gated(const GatedArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void gated_back(const GatedBackArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void add(const AddArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void split(const SplitArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void copy(const CopyArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void zero(const ZeroArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;
void head(const HeadArgs& args, const PassArgs& pass, Workspace& workspace) noexcept;
void quantize(const QuantizeArgs& args, const PassArgs& pass, ThreadPool& pool) noexcept;

double sum_of_squares(std::span<const float> values, ThreadPool& pool) noexcept;
void adamw(const AdamWArgs& args, ThreadPool& pool) noexcept;
void sgd(const SgdArgs& args, ThreadPool& pool) noexcept;
void adamw8(const AdamW8Args& args, ThreadPool& pool) noexcept;
void gefen(const GefenArgs& args, ThreadPool& pool) noexcept;
void combine(const CombineArgs& args, ThreadPool& pool) noexcept;

}  // namespace retro::device::cpu
