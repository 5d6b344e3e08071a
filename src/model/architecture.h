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

struct Architecture {
  std::string_view name;  // as in general.architecture
  /// Tensors of a block, as "attn_q.weight" for "blk.N.attn_q.weight".
  std::span<const std::string_view> block_tensors;
  Hyperparameters (*read)(const gguf::Reader& file) = nullptr;
  /// Emits the forward nodes and returns the finished graph.
  graph::Graph (*build)(graph::Builder& builder, const Model& model, const RopeOf& rope) = nullptr;
};

extern const Architecture kLlama, kGemma3;

/// All that this build knows.
std::span<const Architecture* const> architectures();

/// Reads the keys that every transformer file has, under `name`: sizes, heads, norm epsilon, context.
Hyperparameters read_common(const gguf::Reader& file, std::string_view name);

// Numbers with their bounds; outside of them Error(model) names key, value and bounds. Without a default an
// absent key is an error too.
int32_t positive(const gguf::Reader& file, const std::string& key, std::optional<uint32_t> otherwise = {});
float within(const gguf::Reader& file, const std::string& key, float low, float high,
             std::optional<float> otherwise);
/// A rotary base, 10000 where the key is absent.
float rope_base(const gguf::Reader& file, const std::string& key);

/// Refuses a key that would change the computation in a way this build does not know.
void refuse_key(const gguf::Reader& file, std::string_view key, std::string_view why);

}  // namespace retro::model
