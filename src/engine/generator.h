// Sampling: sequences that keep their keys and values, decoded side by side.
//
// Each pass takes the next token of every sequence that is being sampled and fills up with prompt tokens
// (continuous batching, Yu et al. 2022). A sequence's tokens and log-probabilities depend on its own tokens,
// seed and settings alone, never on what else is in a pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/kv_pages.h"

namespace retro::engine {

struct GeneratorOptions {
  int32_t concurrency = 1;  // sequences sampled at once
  int32_t batch = 128;      // most tokens of a pass; fewer than concurrency counts as it
  int32_t context = 0;      // most tokens of a sequence
  int64_t pages = 0;        // of keys and values
  DType kv_dtype = DType::F16;
  bool fast = false;  // products with activations in 8 bits (EngineOptions::fast_activations)
  int64_t head_chunk_rows = 16;
  std::vector<int32_t> end_tokens;  // any of them ends an answer
};

struct SamplingOptions {
  double temperature = 0.7;  // 0: the likeliest token, the lowest id among equals
  double top_p = 0.95;  // the smallest set of likeliest tokens with at least this mass (Holtzman et al. 2020)
  uint64_t seed = 0;
  uint64_t first_draw = 0;  // number of the first draw in the seed's stream
};

/// What became of an answer.
enum class Finish { end_token, length };

struct Completion {
  std::vector<int32_t> tokens;  // with the token that ended it, where one did
  std::vector<float> logprobs;  // of each, at the sampling temperature, over all tokens
  Finish finish = Finish::length;
};

struct GenerationRequest {
  std::span<const int32_t> prompt;
  SamplingOptions sampling;
  int32_t max_new_tokens = 0;
};

/// Pages that hold `concurrency` answers at once, each to a prompt of its own, or at most `prompts` of them.
int64_t generation_pages(int64_t concurrency, int64_t prompts, int64_t longest_prompt, int64_t new_tokens);

/// The engine of a generator, and the memory it takes.
EnginePlan plan_generator(const model::Model& model, const model::AdapterLayout* adapter,
                          const GeneratorOptions& options);

class Generator {
 public:
  using Id = size_t;

  /// `adapter` may be null, and outlives the generator.
  Generator(device::Device& device, const model::Model& model, const model::Adapter* adapter,
            const GeneratorOptions& options);

  // Sequences one by one. A sequence can join, be extended, fork, pause and leave between any two passes.

  /// An empty sequence.
  Id open();
  /// A sequence with the tokens of another; keys and values that are there are shared.
  Id fork(Id id);
  void close(Id id);
  /// Tokens behind those it has. Error(data) beyond the context.
  void append(Id id, std::span<const int32_t> tokens);
  /// Keeps the first `count` tokens; sampling stops.
  void truncate(Id id, size_t count);
  /// Samples from now on until an end token or `max_new_tokens` more. The sequence has at least one token.
  void start(Id id, const SamplingOptions& sampling, int32_t max_new_tokens);
  /// Where it stands: what was sampled since start(), and whether that is finished.
  const std::vector<int32_t>& tokens(Id id) const { return at(id).tokens; }
  const Completion& completion(Id id) const { return at(id).completion; }
  bool sampling(Id id) const { return at(id).left > 0; }
  bool pending(Id id) const { return at(id).tokens.size() > static_cast<size_t>(at(id).table.rows()); }

  /// One pass over everything that is pending; false where nothing is.
  bool step();

  // Many answers at once.

  /// Called after a pass with the number of finished answers and of tokens sampled so far; returns false to
  /// stop, which throws Error(interrupted).
  using Progress = std::function<bool(size_t finished, int64_t tokens)>;

  /// Answers all requests, at most `concurrency` at a time, in the order of the requests. Equal prompts that
  /// follow one another are computed once, unless `share_prompts` is false.
  std::vector<Completion> generate(std::span<const GenerationRequest> requests, const Progress& progress,
                                   bool share_prompts = true);

  /// Takes the adapter's weights as they are now. Keys and values of the old ones must be gone: every
  /// sequence is closed.
  void refresh_adapter();

  const EnginePlan& plan() const { return engine_.plan(); }
  /// Tokens whose keys were computed, and those that a fork spared.
  int64_t computed_tokens() const { return computed_; }
  int64_t spared_tokens() const { return spared_; }

 private:
  struct State {
    std::vector<int32_t> tokens;
    PageTable table;
    Completion completion;
    SamplingOptions options;
    std::optional<RandomStream> stream;
    int32_t left = 0;  // tokens still to be sampled
    bool open = true;
  };

  State& at(Id id) { return *states_[id]; }
  const State& at(Id id) const { return *states_[id]; }
  void add_rows(Id id, int32_t count);
  int32_t ancestors(const State& state);
  void draw();
  void take_draws();

  GeneratorOptions options_;
  Engine engine_;
  KvPages pages_;
  std::vector<std::unique_ptr<State>> states_;
  std::vector<Id> unused_;
  int64_t computed_ = 0;
  int64_t spared_ = 0;
  int64_t sampled_ = 0;

  // The pass at hand.
  std::vector<int32_t> rows_tokens_, positions_, carry_rows_;
  std::vector<device::Segment> segments_;
  std::vector<int32_t> page_segment_;  // by page: its segment in this pass, or -1
  std::vector<device::Query> queries_;
  std::vector<device::Draw> draws_;
  std::vector<Id> drawing_;
  std::vector<int32_t> drawn_;
  std::vector<float> logprobs_;
};

}  // namespace retro::engine
