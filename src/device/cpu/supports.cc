#include "device/cpu/supports.h"

#include <fmt/format.h>

#include <initializer_list>

#include "device/cpu/convert_row.h"
#include "device/cpu/head_rows.h"
#include "device/cpu/kernels.h"
#include "device/cpu/linear.h"
#include "tensor/dtype.h"

namespace retro::device::cpu {
namespace {

using Reason = std::optional<std::string>;

Reason need_f32(const char* op, std::initializer_list<const Matrix*> matrices) {
  for (const Matrix* m : matrices) {
    if (m->dtype != DType::F32)
      return fmt::format("{} of {} rows; F32 is needed", op, tensor::dtype_name(m->dtype));
  }
  return std::nullopt;
}

Reason need_weight(const char* op, const Weight& w) {
  if (!can_multiply(w.dtype)) {
    return fmt::format("{} with a weight of type {}; {} can be read", op, tensor::dtype_name(w.dtype),
                       tensor::decodable_names());
  }
  return std::nullopt;
}

Reason need_carry(const Matrix& carry) {
  if (carry.dtype == DType::F32 || carry.dtype == DType::F16) return std::nullopt;
  return fmt::format("attention over {} keys and values; F16 or F32 is needed",
                     tensor::dtype_name(carry.dtype));
}

Reason need_quantized(const char* op, const Weight& w, const Matrix& x8) {
  const tensor::DTypeInfo& info = tensor::dtype_info(w.dtype);
  if (info.block_elements == 1) return std::nullopt;
  if (w.cols % QuantizedGroup::kSize != 0) {
    return fmt::format("fast {} with rows of {} weights; a multiple of {} is needed", op, w.cols,
                       QuantizedGroup::kSize);
  }
  const int64_t cols = quantized_columns(w.cols);
  if (x8.data != nullptr && x8.dtype == DType::F32 && x8.cols == cols && x8.stride % 16 == 0)
    return std::nullopt;
  return fmt::format(
      "fast {} with a weight of type {} without rows in 8 bits; {} F32 columns, rows a multiple of "
      "16 apart, are needed",
      op, tensor::dtype_name(w.dtype), cols);
}

Reason need_lora(const Lora& lora) {
  if (lora.rank == 0 || lora.dtype == DType::F32 || lora.dtype == DType::F16) return std::nullopt;
  return fmt::format("an adapter of type {}; F16 or F32 is needed", tensor::dtype_name(lora.dtype));
}

Reason first_of(std::initializer_list<Reason> reasons) {
  for (const Reason& reason : reasons) {
    if (reason) return reason;
  }
  return std::nullopt;
}

Reason need_attention(const AttentionArgs& a) {
  if (a.head_dim < 1 || a.head_dim > kMaxHeadDim) {
    return fmt::format("attention heads of {} elements; 1 to {} are possible", a.head_dim, kMaxHeadDim);
  }
  if (a.kv_heads < 1 || a.heads % a.kv_heads != 0) {
    return fmt::format("{} attention heads over {} key heads; the first must be a multiple of the second",
                       a.heads, a.kv_heads);
  }
  return first_of(
      {need_f32("attention", {&a.q, &a.out, &a.lse}), need_carry(a.carry_k), need_carry(a.carry_v)});
}

struct Check {
  Reason operator()(const EmbedArgs& a) const {
    return first_of({need_weight("embed", a.table), need_f32("embed", {&a.out})});
  }
  Reason operator()(const RmsNormArgs& a) const { return need_f32("rms_norm", {&a.x, &a.y}); }
  Reason operator()(const RmsNormBackArgs& a) const { return need_f32("rms_norm", {&a.x, &a.dy, &a.dx}); }
  Reason operator()(const LinearArgs& a) const {
    return first_of({need_weight("linear", a.w), need_lora(a.lora), need_f32("linear", {&a.x, &a.y, &a.u}),
                     a.fast ? need_quantized("linear", a.w, a.x8) : std::nullopt});
  }
  Reason operator()(const LinearBackArgs& a) const {
    return first_of({need_weight("linear", a.w), need_lora(a.lora),
                     need_f32("linear", {&a.dy, &a.dx, &a.x, &a.u, &a.du})});
  }
  Reason operator()(const WeightGradArgs& a) const { return need_f32("weight gradient", {&a.dy, &a.x}); }
  Reason operator()(const RopeArgs& a) const {
    if (a.dims % 2 != 0 || a.dims > a.head_dim) {
      return fmt::format("rope over {} of {} elements; an even number of them is needed", a.dims, a.head_dim);
    }
    return need_f32("rope", {&a.x, &a.y});
  }
  Reason operator()(const KvStoreArgs& a) const {
    return first_of({need_f32("kv_store", {&a.k, &a.v}), need_carry(a.carry_k), need_carry(a.carry_v)});
  }
  Reason operator()(const AttentionArgs& a) const { return need_attention(a); }
  Reason operator()(const AttentionBackArgs& a) const {
    return first_of({need_attention(a.forward),
                     need_f32("attention", {&a.dout, &a.dq, &a.dk, &a.dv, &a.delta, &a.dscores})});
  }
  Reason operator()(const KvLoadGradArgs& a) const {
    return need_f32("kv_load_grad", {&a.carry_dk, &a.carry_dv, &a.dk, &a.dv});
  }
  Reason operator()(const GatedArgs& a) const { return need_f32("gated", {&a.gate, &a.up, &a.out}); }
  Reason operator()(const GatedBackArgs& a) const {
    return need_f32("gated", {&a.gate, &a.up, &a.dout, &a.dgate, &a.dup});
  }
  Reason operator()(const AddArgs& a) const { return need_f32("add", {&a.a, &a.b, &a.out}); }
  Reason operator()(const SplitArgs& a) const {
    return need_f32("split", {&a.whole, &a.parts[0], &a.parts[1], &a.parts[2]});
  }
  Reason operator()(const CopyArgs& a) const {
    for (const Matrix* m : {&a.from, &a.to}) {
      if (!is_float(m->dtype)) {
        return fmt::format("copy of {} rows; F32, F16 or BF16 is needed", tensor::dtype_name(m->dtype));
      }
    }
    return std::nullopt;
  }
  Reason operator()(const ZeroArgs& a) const {
    if (is_float(a.to.dtype)) return std::nullopt;
    return fmt::format("zeros of type {}; F32, F16 or BF16 is needed", tensor::dtype_name(a.to.dtype));
  }
  Reason operator()(const HeadArgs& a) const {
    if (a.w.rows > kMaxVocabularyBlocks * kVocabularyBlock) {
      return fmt::format("a vocabulary of {} words; at most {} are possible", a.w.rows,
                         kMaxVocabularyBlocks * kVocabularyBlock);
    }
    return first_of({need_weight("head", a.w),
                     need_f32("head", {&a.h, &a.dh, &a.gathered, &a.dgathered, &a.logits}),
                     a.fast ? need_quantized("head", a.w, a.gathered8) : std::nullopt});
  }
  Reason operator()(const QuantizeArgs& a) const {
    if (a.x.cols % QuantizedGroup::kSize != 0) {
      return fmt::format("quantize of rows of {} numbers; a multiple of {} is needed", a.x.cols,
                         QuantizedGroup::kSize);
    }
    if (a.out.cols != quantized_columns(a.x.cols) || a.out.stride % 16 != 0) {
      return fmt::format("quantize to {} columns, rows {} apart; {}, a multiple of 16 apart, are needed",
                         a.out.cols, a.out.stride, quantized_columns(a.x.cols));
    }
    return need_f32("quantize", {&a.x, &a.out});
  }
};

}  // namespace

std::optional<std::string> unsupported(const OpArgs& op) {
  return std::visit(Check{}, op);
}

}  // namespace retro::device::cpu
