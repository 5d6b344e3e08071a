// The registry of architectures: one row a `general.architecture`, one small file each.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/reader.h"
#include "graph/builder.h"
#include "model/hyperparameters.h"

namespace retro::model {

class Model;

/// Rotation angles of a layer's queries and keys.
using RopeOf = std::function<const float*(const RopeSettings&)>;

class Block;

struct Architecture {
  std::string_view name;  // as in general.architecture
  /// Tensors of a block, as "attn_q.weight" for "blk.N.attn_q.weight".
  std::span<const std::string_view> block_tensors;
  /// Tensors beside the blocks, beyond token_embd.weight, output_norm.weight and output.weight.
  std::span<const std::string_view> other_tensors;
  /// Keys without "NAME.", of those that read_common() refuses elsewhere, which `read` or `block` accounts
  /// for.
  std::span<const std::string_view> keys;
  Hyperparameters (*read)(const gguf::Reader& file) = nullptr;
  /// Emits a layer on the residual stream `x` and returns the stream behind it.
  graph::ValueId (*block)(const Block& block, graph::ValueId x) = nullptr;
};

extern const Architecture kLlama, kQwen2, kQwen3, kPhi3, kGemma2, kGemma3;

/// All that this build knows.
std::span<const Architecture* const> architectures();

/// Reads the keys that every transformer file has, under "NAME.": sizes, heads, norm epsilon, context,
/// rotation. Keys that would change the computation are refused, unless the architecture names them in
/// `keys`.
Hyperparameters read_common(const gguf::Reader& file, const Architecture& architecture);

// Numbers with their bounds; outside of them Error(model) names key, value and bounds. Without a default an
// absent key is an error too.
int32_t positive(const gguf::Reader& file, const std::string& key, std::optional<uint32_t> otherwise = {});
float within(const gguf::Reader& file, const std::string& key, float low, float high,
             std::optional<float> otherwise);
/// A rotary base, 10000 where the key is absent.
float rope_base(const gguf::Reader& file, const std::string& key);

/// The keys that a sliding-window layer sees; 0 where the key is absent or 0: no such layers.
int32_t window(const gguf::Reader& file, const std::string& key);
/// The divisors of a rotation's frequencies, one F32 number above 0 for each of `rope_dims` / 2 pairs; null
/// where the file has no such tensor.
const float* rope_factors(const gguf::Reader& file, const char* tensor, int32_t rope_dims);

}  // namespace retro::model
