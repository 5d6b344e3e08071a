#include "model/adapter_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/model.h"

namespace retro::model {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kAliases = {{
    {"q", "blk.*.attn_q.weight"},
    {"k", "blk.*.attn_k.weight"},
    {"v", "blk.*.attn_v.weight"},
    {"qkv", "blk.*.attn_qkv.weight"},
    {"o", "blk.*.attn_output.weight"},
    {"ffn_up", "blk.*.ffn_up.weight"},
    {"ffn_down", "blk.*.ffn_down.weight"},
    {"ffn_gate", "blk.*.ffn_gate.weight"},
}};

/// A matrix that holds those of several names; where a file has it in their place, the names stand for it
/// together.
struct Fused {
  std::string_view tensors;
  std::array<std::string_view, 3> names;
};
constexpr Fused kFused[] = {{"blk.*.attn_qkv.weight", {"q", "k", "v"}},
                            {"blk.*.ffn_up.weight", {"ffn_up", "ffn_gate", "ffn_up"}}};

std::string_view expand(std::string_view pattern) {
  for (const auto& [alias, tensors] : kAliases) {
    if (pattern == alias) return tensors;
  }
  return pattern == "auto" ? "*" : pattern;
}

bool matches_any(std::string_view pattern, const std::vector<const gguf::Tensor*>& matrices) {
  return std::any_of(matrices.begin(), matrices.end(),
                     [&](const gguf::Tensor* tensor) { return matches(pattern, tensor->name); });
}

/// The tensors that a pattern of the list `all` stands for: its own, or the fused ones that hold them.
std::string_view resolve(std::string_view pattern, std::span<const std::string> all,
                         const std::vector<const gguf::Tensor*>& matrices) {
  const std::string_view own = expand(pattern);
  if (matches_any(own, matrices)) return own;
  for (const Fused& fused : kFused) {
    const auto& names = fused.names;
    if (std::find(names.begin(), names.end(), pattern) == names.end()) continue;
    if (!matches_any(fused.tensors, matrices)) continue;
    for (const std::string_view name : names) {
      if (std::find(all.begin(), all.end(), name) != all.end()) continue;
      fail(ErrorKind::config,
           "lora.targets: '{}' alone: this model has one matrix for {}, whose adapter changes them all; name "
           "them all "
           "or the tensor, \"{}\"",
           pattern, fmt::join(std::set<std::string_view>(names.begin(), names.end()), ", "), fused.tensors);
    }
    return fused.tensors;
  }
  return own;
}

std::string list_names(const std::vector<const gguf::Tensor*>& tensors) {
  std::string names;
  for (const gguf::Tensor* tensor : tensors) names += fmt::format("\n  {}", tensor->name);
  return names;
}

void refuse_pattern(const Model& model, std::string_view pattern,
                    const std::vector<const gguf::Tensor*>& matrices) {
  if (matches(expand(pattern), "token_embd.weight") || pattern == "embed") {
    fail(ErrorKind::config, "lora.targets: '{}' names the input embedding, which is never trained", pattern);
  }
  if (pattern == "output" || matches(expand(pattern), "output.weight")) {
    fail(ErrorKind::config, "lora.targets: '{}' names the output head, {}; leave it out or use [\"auto\"]",
         pattern,
         model.tied() ? "which this model ties to its input embedding" : "which this build cannot adapt");
  }
  fail(ErrorKind::config,
       "lora.targets: '{}' matches no tensor; use q, k, v, qkv, o, ffn_up, ffn_down, ffn_gate, a pattern "
       "such as "
       "blk.*.attn_q.weight, or [\"auto\"]. The 2-D tensors are:{}",
       pattern, list_names(matrices));
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

const LoraTarget* AdapterLayout::find(const std::string& name) const {
  const auto at =
      std::find_if(targets.begin(), targets.end(), [&](const LoraTarget& t) { return t.name == name; });
  return at == targets.end() ? nullptr : &*at;
}

void AdapterLayout::add(std::string name, int32_t rank, int64_t in, int64_t out) {
  const int64_t offset = size();
  targets.push_back({std::move(name), rank, in, out, offset, offset + rank * in});
}

AdapterLayout choose_targets(const Model& model, std::span<const std::string> patterns, int32_t rank,
                             float alpha, tensor::DType dtype) {
  const auto matrices = model.block_matrices();
  std::vector<std::string_view> resolved;
  for (const std::string& pattern : patterns) {
    if (pattern == "auto" && patterns.size() > 1) {
      fail(ErrorKind::config, "lora.targets: \"auto\" stands alone: [\"auto\"]");
    }
    resolved.push_back(resolve(pattern, patterns, matrices));
    if (!matches_any(resolved.back(), matrices)) refuse_pattern(model, pattern, matrices);
  }
  AdapterLayout layout;
  layout.alpha = alpha;
  layout.dtype = dtype;
  for (const gguf::Tensor* tensor : matrices) {
    const bool wanted = std::any_of(resolved.begin(), resolved.end(),
                                    [&](std::string_view pattern) { return matches(pattern, tensor->name); });
    if (wanted) layout.add(std::string(tensor->name), rank, tensor->cols(), tensor->rows());
  }
  return layout;
}

AdapterLayout named_targets(const Model& model, std::span<const std::pair<std::string, int32_t>> ranks,
                            float alpha, tensor::DType dtype) {
  const auto matrices = model.block_matrices();
  AdapterLayout layout;
  layout.alpha = alpha;
  layout.dtype = dtype;
  for (const auto& [name, rank] : ranks) {
    const auto at = std::find_if(matrices.begin(), matrices.end(),
                                 [&name = name](const gguf::Tensor* tensor) { return tensor->name == name; });
    if (at == matrices.end() || rank < 1) fail(ErrorKind::model, "the model has no block matrix '{}'", name);
    layout.add(name, rank, (*at)->cols(), (*at)->rows());
  }
  return layout;
}

}  // namespace retro::model
