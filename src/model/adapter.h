// LoRA adapters (Hu et al. 2021) in memory and as llama.cpp's adapter GGUF.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/adapter_layout.h"

namespace retro::model {

struct Adapter {
  AdapterLayout layout;
  std::vector<float> weights;  // the f32 master of all factors, laid out as `layout` says
};

/// A fresh adapter: A uniform in ±1/√in, from the stream (seed, tensor name); B zero.
Adapter make_adapter(AdapterLayout layout, uint64_t seed);

/// Where an adapter comes from, written beside it as `retrograd.*`.
struct Provenance {
  std::string base_fingerprint;
  std::string document_hash;
  uint64_t seed = 0;
  uint64_t step = 0;
};

/// Writes `general.type = "adapter"`, `adapter.type = "lora"`, `adapter.lora.alpha`, and per target
/// NAME.lora_a (ne [in, r]) and NAME.lora_b (ne [r, out]) in the layout's dtype; reads the file back and
/// compares it bit for bit. The file appears whole or not at all.
void write_adapter(const std::filesystem::path& path, const Adapter& adapter, const Model& model,
                   const Provenance& provenance);

struct LoadedAdapter {
  Adapter adapter;
  std::string base_fingerprint;  // empty where the file has none
  bool zero = false;             // every B is zero: it changes nothing
};

/// Reads an adapter for `model`. Throws Error(model) naming the first tensor whose name or shape does not
/// fit, or for a plain model in its place.
LoadedAdapter read_adapter(const std::filesystem::path& path, const Model& model);

/// "applied 210 of 210 tensors to …", with warnings for another base's fingerprint or an all-zero B.
std::vector<std::string> describe_loading(const LoadedAdapter& loaded, const Model& model,
                                          const std::string& fingerprint);

}  // namespace retro::model
