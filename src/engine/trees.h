// Completions of prompts as sets of sequences: alone, or as trees that share one copy of their prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/sequence.h"

namespace retro::engine {

/// A completion that is to be scored or trained.
struct TreeMember {
  std::span<const int32_t> prompt;
  std::span<const int32_t> completion;
  std::span<float> logprobs;       // [completion], out
  std::span<float> dlogprobs;      // [completion]; empty where it is only scored
  std::span<float> features = {};  // [completion, embedding], out; empty: not wanted
};

/// How many completions share a prompt's rows: all, at most a number, or as many as fit a pass with it.
struct Fanout {
  enum class Kind { automatic, off, all, at_most } kind = Kind::automatic;
  int64_t most = 0;
};

/// Sets of sequences over members, and their storage. A set is coupled: its members run together.
class TreeSets {
 public:
  /// Members of equal prompt share it as `fanout` says; `micro_batch` are the rows of a pass. Members without
  /// tokens are left out. Whole sequences are put side by side as far as they fit a pass.
  void build(std::span<const TreeMember> members, const Fanout& fanout, int32_t micro_batch);

  size_t size() const { return sets_.size(); }
  std::span<const Sequence> set(size_t i) const { return sets_[i].sequences; }
  /// The members in a set, by index.
  std::span<const size_t> members(size_t i) const { return sets_[i].members; }

  /// Rows of a set with `count` completions of at most `new_tokens` to a prompt of `prompt` tokens.
  static int64_t tree_rows(int64_t prompt, int64_t count, int64_t new_tokens);
  /// The most rows that a set of build() can have.
  static int64_t most_rows(int64_t longest_prompt, int64_t count, int64_t new_tokens, const Fanout& fanout,
                           int32_t micro_batch);

 private:
  struct Set {
    std::vector<Sequence> sequences;
    std::vector<size_t> members;
    int64_t rows = 0;
  };
  struct Storage {
    std::vector<int32_t> tokens;
    std::vector<int32_t> targets;
  };
  void add_whole(const TreeMember& member, size_t index, int32_t micro_batch);
  void add_tree(std::span<const TreeMember> members, std::span<const size_t> indices);
  const Storage& store(std::span<const int32_t> first, std::span<const int32_t> completion);

  std::vector<Set> sets_;
  std::vector<std::unique_ptr<Storage>> storage_;
};

}  // namespace retro::engine
