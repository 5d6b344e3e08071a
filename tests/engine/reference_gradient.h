// The adapter that tools/references/lora_gradient.py defines, and the distance of a gradient from what it
// stores: of each factor's gradient the norm and eight random ±1 projections. E[(p·(g−ĝ))²] = |g−ĝ|², so
// projections over many tensors estimate the relative distance well.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/adapter.h"
#include "model/model.h"

namespace retro::test {

/// Element i of a factor as the file has it: A [rank, in], B [out, rank].
inline size_t flat_index(const model::LoraTarget& target, bool a, int64_t i) {
  if (a) return static_cast<size_t>(target.a_offset + i);
  const int64_t row = i / target.rank;
  return static_cast<size_t>(target.bt_offset + (i % target.rank) * target.out + row);
}

/// The adapter of the reference on every matrix of the blocks.
inline model::Adapter reference_adapter(const model::Model& model, const nlohmann::json& reference) {
  const std::vector<std::string> targets = {"auto"};
  model::Adapter adapter =
      model::make_adapter(model::choose_targets(model, targets, reference.at("rank").get<int32_t>(),
                                                reference.at("alpha").get<float>(), tensor::DType::F32),
                          0);
  for (const auto& target : adapter.layout.targets) {
    for (const bool a : {true, false}) {
      const uint64_t key = fnv1a64(target.name + (a ? ".lora_a" : ".lora_b"));
      const double amplitude = a ? 1.0 / std::sqrt(static_cast<double>(target.in)) : 0.05;
      const int64_t count = target.rank * (a ? target.in : target.out);
      for (int64_t i = 0; i < count; ++i) {
        const double u = static_cast<double>(splitmix64(key + static_cast<uint64_t>(i)) >> 40) * 0x1p-24;
        adapter.weights[flat_index(target, a, i)] = static_cast<float>((2 * u - 1) * amplitude);
      }
    }
  }
  return adapter;
}

/// |gradient − reference| / |reference|, estimated; infinite where the tensors are not the same ones.
inline double distance_to_reference(std::span<const float> gradient, const model::AdapterLayout& layout,
                                    const nlohmann::json& reference) {
  constexpr size_t kProjections = 8;
  double squared_difference = 0;
  double squared_norm = 0;
  size_t factors = 0;
  for (const auto& target : layout.targets) {
    for (const bool a : {true, false}) {
      const std::string name = target.name + (a ? ".lora_a" : ".lora_b");
      const auto& expected = reference.at("tensors").at(name);
      const uint64_t key = fnv1a64(name);
      double projections[kProjections] = {};
      const int64_t count = target.rank * (a ? target.in : target.out);
      for (int64_t i = 0; i < count; ++i) {
        const double g = static_cast<double>(gradient[flat_index(target, a, i)]);
        const uint64_t signs = splitmix64(key ^ (static_cast<uint64_t>(i) + 0x5bd1e995U));
        for (size_t j = 0; j < kProjections; ++j) projections[j] += ((signs >> j) & 1) != 0 ? g : -g;
      }
      for (size_t j = 0; j < kProjections; ++j) {
        const auto p = expected.at("projections").at(j).get<double>();
        squared_difference += std::pow(projections[j] - p, 2) / kProjections;
      }
      squared_norm += std::pow(expected.at("norm").get<double>(), 2);
      ++factors;
    }
  }
  if (factors != reference.at("tensors").size()) return INFINITY;
  return std::sqrt(squared_difference / squared_norm);
}

}  // namespace retro::test
