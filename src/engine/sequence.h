// What an algorithm gives the engine: tokens, which of them it asks about, and room for the answers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace retro::engine {

/// A sequence and its queries. Query i asks for the log-probability of the token at `targets[i]` after all
/// tokens before it; targets ascend, from 1 on. Tokens behind the last target are not computed.
struct Sequence {
  std::span<const int32_t> tokens;
  std::span<const int32_t> targets;
  std::span<float> logprobs;   // [targets], out
  std::span<float> dlogprobs;  // [targets], d loss / d logprob

  /// Rows that a pass over it takes.
  int32_t rows() const { return targets.empty() ? 0 : targets.back(); }
};

/// Fills the dlogprobs of a coupled set, once all its logprobs are known.
using Objective = std::function<void()>;

}  // namespace retro::engine
