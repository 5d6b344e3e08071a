// A GGUF model: its file, hyperparameters, weights as they lie, and its graph.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/reader.h"
#include "graph/builder.h"
#include "model/adapter_layout.h"
#include "model/hyperparameters.h"
#include "model/rope_table.h"

namespace retro::model {

struct Architecture;

/// A forward graph and the tables that its nodes point to.
struct ModelGraph {
  graph::Graph graph;
  std::vector<std::unique_ptr<RopeTable>> tables;

  int64_t table_bytes() const;
};

class Model {
 public:
  /// Opens and checks a model: a known architecture, every tensor that it needs with the right shape and a
  /// type that can be computed with, and none that it does not know. Throws Error(model) naming tensor or
  /// key.
  explicit Model(const std::filesystem::path& path);

  const gguf::Reader& file() const { return file_; }
  const Hyperparameters& hyperparameters() const { return hyper_; }
  std::string_view architecture() const;

  /// The graph for positions below `positions`, with low-rank terms where `adapter` (or nothing) has targets.
  /// `context` is the length that the run's sequences may have, which some rotations depend on.
  ModelGraph build_graph(const AdapterLayout* adapter, int32_t positions, int32_t context) const;

  /// Names of the 2-D weights of the blocks, which an adapter may target, in file order.
  std::vector<const gguf::Tensor*> block_matrices() const;
  /// The head reads the input embedding: the file has no `output.weight`.
  bool tied() const { return file_.find_tensor("output.weight") == nullptr; }

  // For architectures.

  /// A 2-D weight of [rows, cols], ne = [cols, rows].
  graph::NamedWeight matrix(const std::string& name, int64_t rows, int64_t cols) const;
  /// A 1-D F32 weight of `size` elements.
  const float* vector(const std::string& name, int64_t size) const;

 private:
  void check_tensors() const;

  gguf::Reader file_;
  const Architecture* architecture_ = nullptr;
  Hyperparameters hyper_;
};

}  // namespace retro::model
