// Passes over packed sequences: log-probabilities, and the exact gradient of the adapter for what an
// algorithm answers to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/pass.h"
#include "engine/sequence.h"
#include "graph/execute.h"
#include "graph/plan.h"
#include "graph/program.h"
#include "model/adapter.h"
#include "model/model.h"

namespace retro::engine {

using tensor::DType;

struct EngineOptions {
  int32_t micro_batch = 512;  // most rows of a pass
  int32_t set_rows =
      0;  // most rows of a coupled set, as the longest record; fewer than micro_batch counts as it
  int32_t context = 0;  // tokens that a sequence of the run may have; 0: set_rows
  DType kv_dtype = DType::F16;
  bool train = true;              // without it: scores only
  int32_t checkpoint_layers = 0;  // 0: no gradient checkpointing
  DType checkpoint_dtype = DType::F32;
  int64_t head_chunk_rows = 64;
  int32_t carry_rows = 0;  // rows of keys and values to keep; fewer than set_rows counts as it
  float temperature = 1;   // of log-probabilities and their gradient
  /// Products of sampling: activations in 8 bits (device/op_args.h, LinearArgs::fast). Only without `train`.
  bool fast_activations = false;
};

/// Bytes by part; `plan` prints it and the engine allocates exactly that.
struct MemoryPart {
  std::string name;
  int64_t bytes = 0;
};

/// A program for a model and an adapter, and the memory it takes; nothing is allocated yet.
struct EnginePlan {
  EngineOptions options;
  graph::Program program;
  graph::Plan plan;
  std::vector<std::unique_ptr<model::RopeTable>> tables;
  int64_t carry_rows = 0;
  std::vector<MemoryPart> parts;  // what the engine itself allocates

  int64_t bytes() const;
};

/// `adapter` may be null: the base alone, which cannot be trained.
EnginePlan plan_engine(const model::Model& model, const model::AdapterLayout* adapter,
                       const EngineOptions& options);

/// Rows of logits, valid until the engine runs again.
struct Logits {
  const float* data = nullptr;
  size_t vocabulary = 0;
  size_t stride = 0;

  std::span<const float> row(size_t i) const { return {data + i * stride, vocabulary}; }
};

class Engine {
 public:
  /// `adapter` outlives the engine and is what refresh_adapter() reads; null for the base alone. Throws
  /// Error(device) for an operation that the device cannot run, and where memory is missing.
  Engine(device::Device& device, const model::Adapter* adapter, EnginePlan plan);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Of these: no sequence, and no coupled set, has more rows than the plan's set_rows.

  /// Log-probabilities of all queries. Sequences are independent of one another, bit for bit.
  void score(std::span<const Sequence> sequences);

  /// The same for a set that may hold trees.
  void score_set(std::span<const Sequence> set);

  /// Adds the gradient of independent sequences whose dlogprobs are known; also fills their logprobs.
  void accumulate(std::span<const Sequence> sequences);

  /// Adds the gradient of sequences whose dlogprobs depend on one another's logprobs. `objective` does not
  /// call this engine.
  void accumulate_coupled(std::span<const Sequence> set, const Objective& objective);

  /// The flat gradient, laid out as the adapter's weights.
  std::span<float> gradient() { return gradient_; }
  void clear_gradient();

  /// Takes the adapter's weights as they are now, rounded to its dtype.
  void refresh_adapter();

  /// Feeds tokens that follow `position` earlier ones of one sequence and returns the logits [vocabulary]
  /// after the last. The keys of earlier tokens must still be in the carry.
  std::span<const float> next_logits(std::span<const int32_t> tokens, int32_t position);

  /// Logits, a row a piece, after the last row of each piece, which goes on a sequence of `set` whose
  /// earlier keys are in the carry from the piece's carry_begin on. All pieces together are one pass, and no
  /// more than the plan's head_chunk_rows. Of a piece's tokens [begin, end) only `end` is a target.
  Logits next_logits(std::span<const Sequence> set, std::span<const Piece> pieces);

  /// Runs the rows of a pass that the caller has laid out over carry rows of its own, then the head for
  /// `queries` of them, as often as wanted.
  void forward(const device::PassArgs& pass);
  void head(const device::PassArgs& pass);

  const EnginePlan& plan() const { return plan_; }

 private:
  void bind(const model::Adapter* adapter);
  void require_supported() const;
  void* allocate(int64_t bytes, const char* what);
  void clear_carry_gradients(int64_t rows);
  void run(std::span<const Sequence> set, std::span<const Piece> pieces, device::HeadMode mode, size_t begin,
           size_t end);
  const device::HeadArgs& head_args() const;
  Logits logits() const;
  void accumulate_known(std::span<const Sequence> set);

  device::Device& device_;
  const model::Adapter* adapter_;
  EnginePlan plan_;
  PassBuffers pass_;
  Passes passes_;  // of the set at hand
  struct Release {
    device::Device* device;
    size_t bytes;
    void operator()(void* memory) const { device->release(memory, bytes); }
  };
  std::vector<std::unique_ptr<void, Release>> memory_;
  std::vector<graph::CarryBuffers> carries_;
  std::byte* arena_ = nullptr;
  std::span<float> gradient_;
  void* working_ = nullptr;  // the adapter in its stored dtype, where that is not F32
  graph::Executable executable_;
};

}  // namespace retro::engine
