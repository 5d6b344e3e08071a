// Which tensors an adapter changes, and where its factors lie in one flat buffer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace retro::model {

/// A [rank, in] lies at a_offset, B transposed [rank, out] at bt_offset (elements).
struct LoraTarget {
  std::string name;  // of the base tensor: "blk.0.attn_q.weight"
  int32_t rank = 0;
  int64_t in = 0;
  int64_t out = 0;
  int64_t a_offset = 0;
  int64_t bt_offset = 0;
};

struct AdapterLayout {
  std::vector<LoraTarget> targets;
  float alpha = 0;
  tensor::DType dtype = tensor::DType::F16;  // of the stored factors, and of those the forward pass uses

  /// Elements of all factors.
  int64_t size() const {
    return targets.empty() ? 0 : targets.back().bt_offset + targets.back().rank * targets.back().out;
  }
  const LoraTarget* find(const std::string& name) const;
  /// Appends a target behind the last one.
  void add(std::string name, int32_t rank, int64_t in, int64_t out);
};

class Model;

/// Targets by `patterns`: aliases (q, k, v, o, ffn_up, ffn_down, ffn_gate), tensor names with `*` and `?`, or
/// "auto" alone for every 2-D block weight. Throws Error(config) for a pattern that matches nothing, with the
/// tensors there are, and for one that names the embedding or the head.
AdapterLayout choose_targets(const Model& model, std::span<const std::string> patterns, int32_t rank,
                             float alpha, tensor::DType dtype);

/// Targets named one by one with their ranks, as a checkpoint keeps them. Throws Error(model) for a name that
/// is no block matrix.
AdapterLayout named_targets(const Model& model, std::span<const std::pair<std::string, int32_t>> ranks,
                            float alpha, tensor::DType dtype);

/// Whether `text` matches `pattern`, where `*` stands for any characters and `?` for one.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace retro::model
