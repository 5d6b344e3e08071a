// What is sampled and in which order it is trained, as functions of seeds and counters alone, so that a run
// goes on anywhere as if it had never stopped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace retro::algo {

/// The seed of a completion: `position` is that of its prompt in the run's endless sequence of prompts
/// (replacements count), `member` its place in the group.
uint64_t completion_seed(uint64_t seed, int64_t position, int64_t member);

/// The seed of an evaluation's answer to prompt `index` of its file, the same at every evaluation.
uint64_t evaluation_seed(uint64_t seed, int64_t index);

/// The order in which pass `epoch` over update `update` trains its `count` groups or completions (Fisher and
/// Yates).
std::vector<size_t> step_order(size_t count, uint64_t seed, int64_t update, int64_t epoch);

/// Packs completions into PPO's steps: in the order given, as many whole ones in a row as fit `ctx`.
/// `lengths` [completions]: tokens of prompt and answer, none above ctx.
std::vector<std::vector<size_t>> pack_completions(std::span<const int64_t> lengths,
                                                  std::span<const size_t> order, int64_t ctx);

/// `[grpo.dynamic_sampling]`: replacements for dead groups.
struct DynamicSampling {
  int64_t groups = 1;      ///< wanted a update
  int64_t max_factor = 1;  ///< at most that many times `groups` are sampled; 1: no replacements

  /// How many groups to sample next, after `sampled` of which `live` can be trained; 0: go on with what there
  /// is.
  int64_t next_draw(int64_t sampled, int64_t live) const;
};

}  // namespace retro::algo
