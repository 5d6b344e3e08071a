// What an algorithm gives the engine: tokens, which of them it asks about, and room for the answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

namespace retro::engine {

/// A sequence and its queries. Query i asks for the log-probability of the token at `targets[i]` after all
/// tokens before it; targets ascend, from 1 on. Tokens behind the last target are not computed, unless
/// `shared_rows` asks for them.
///
/// A set may hold trees: a sequence with a parent goes on behind the parent's rows and sees them all, so that
/// many completions share one copy of their prompt. A parent stands before its children.
struct Sequence {
  std::span<const int32_t> tokens;
  std::span<const int32_t> targets;
  std::span<float> logprobs;   // [targets], out
  std::span<float> dlogprobs;  // [targets], d loss / d logprob
  int32_t parent = -1;         // index in the set, smaller than its own
  int32_t shared_rows = 0;     // first tokens that its children go on from
  std::span<float> features =
      {};  // [targets, embedding], out: the hidden rows that were asked; empty: not wanted

  /// Rows that a pass over it takes.
  int32_t rows() const { return std::max(targets.empty() ? 0 : targets.back(), shared_rows); }
};

/// Fills the dlogprobs of a coupled set, once all its logprobs are known.
using Objective = std::function<void()>;

}  // namespace retro::engine
