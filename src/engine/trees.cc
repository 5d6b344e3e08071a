#include "engine/trees.h"

#include <algorithm>
#include <numeric>

namespace retro::engine {

namespace {

/// Rows of a completion behind a shared prompt, whose last token it computes itself.
int64_t own_rows(const TreeMember& member) {
  return static_cast<int64_t>(member.completion.size());
}

int64_t shared_rows(std::span<const int32_t> prompt) {
  return static_cast<int64_t>(prompt.size()) - 1;
}

/// What passes over a set cost, in rows: forward and backward, and once more forward for the keys of later
/// passes.
int64_t cost(int64_t rows, int64_t micro_batch) {
  const int64_t passes = (rows + micro_batch - 1) / micro_batch;
  return 3 * rows + (passes - 1) * micro_batch;
}

/// The first of `indices` that go together: as many as fit a pass with their prompt, at least one.
size_t fitting(std::span<const TreeMember> members, std::span<const size_t> indices, int64_t micro_batch) {
  int64_t rows = shared_rows(members[indices[0]].prompt);
  size_t count = 0;
  while (count < indices.size()) {
    rows += own_rows(members[indices[count]]);
    if (count > 0 && rows > micro_batch) break;
    ++count;
  }
  return count;
}

}  // namespace

int64_t TreeSets::tree_rows(int64_t prompt, int64_t count, int64_t new_tokens) {
  return prompt - 1 + count * new_tokens;
}

int64_t TreeSets::most_rows(int64_t longest_prompt, int64_t count, int64_t new_tokens, const Fanout& fanout,
                            int32_t micro_batch) {
  const int64_t one = tree_rows(longest_prompt, 1, new_tokens);
  switch (fanout.kind) {
    case Fanout::Kind::off:
      return std::max<int64_t>(one, std::min<int64_t>(micro_batch, count * one));
    case Fanout::Kind::at_most:
      count = std::min(count, fanout.most);
      break;
    default:
      break;
  }
  return tree_rows(longest_prompt, count, new_tokens);
}

const TreeSets::Storage& TreeSets::store(std::span<const int32_t> first,
                                         std::span<const int32_t> completion) {
  Storage& kept = *storage_.emplace_back(std::make_unique<Storage>());
  kept.tokens.assign(first.begin(), first.end());
  kept.tokens.insert(kept.tokens.end(), completion.begin(), completion.end());
  kept.targets.resize(completion.size());
  std::iota(kept.targets.begin(), kept.targets.end(), static_cast<int32_t>(first.size()));
  return kept;
}

void TreeSets::add_whole(const TreeMember& member, size_t index, int32_t micro_batch) {
  const Storage& kept = store(member.prompt, member.completion);
  Sequence sequence{kept.tokens, kept.targets, member.logprobs, member.dlogprobs};
  sequence.features = member.features;
  const int64_t rows = sequence.rows();
  const bool joins =
      !sets_.empty() && sets_.back().sequences[0].shared_rows == 0 && sets_.back().rows + rows <= micro_batch;
  if (!joins) sets_.emplace_back();
  sets_.back().sequences.push_back(sequence);
  sets_.back().members.push_back(index);
  sets_.back().rows += rows;
}

void TreeSets::add_tree(std::span<const TreeMember> members, std::span<const size_t> indices) {
  const std::span<const int32_t> prompt = members[indices[0]].prompt;
  Set& set = sets_.emplace_back();
  Sequence root;
  root.tokens = prompt;
  root.shared_rows = static_cast<int32_t>(shared_rows(prompt));
  set.sequences.push_back(root);
  for (const size_t index : indices) {
    const TreeMember& member = members[index];
    const Storage& kept = store(prompt.last(1), member.completion);
    Sequence sequence{kept.tokens, kept.targets, member.logprobs, member.dlogprobs};
    sequence.features = member.features;
    sequence.parent = 0;
    set.sequences.push_back(sequence);
    set.members.push_back(index);
    set.rows += sequence.rows();
  }
  set.rows += root.shared_rows;
}

void TreeSets::build(std::span<const TreeMember> members, const Fanout& fanout, int32_t micro_batch) {
  sets_.clear();
  storage_.clear();
  for (size_t begin = 0; begin < members.size();) {
    std::vector<size_t> together;
    size_t end = begin;
    for (; end < members.size() && std::ranges::equal(members[end].prompt, members[begin].prompt); ++end) {
      if (!members[end].completion.empty()) together.push_back(end);
    }
    begin = end;
    std::span<const size_t> rest = together;
    if (rest.empty()) continue;
    if (fanout.kind == Fanout::Kind::off || rest.size() == 1 || members[rest[0]].prompt.size() == 1) {
      for (const size_t index : rest) add_whole(members[index], index, micro_batch);
      continue;
    }
    const int64_t prompt = shared_rows(members[rest[0]].prompt);
    int64_t all = prompt;
    for (const size_t index : rest) all += own_rows(members[index]);
    // Sub-trees that fit a pass each, or one tree over several passes: what costs less.
    int64_t parts_cost = 0;
    for (auto left = rest; !left.empty();) {
      const size_t count = fitting(members, left, micro_batch);
      int64_t rows = prompt;
      for (const size_t index : left.first(count)) rows += own_rows(members[index]);
      parts_cost += cost(rows, micro_batch);
      left = left.subspan(count);
    }
    const bool whole = fanout.kind == Fanout::Kind::all ||
                       (fanout.kind == Fanout::Kind::automatic && cost(all, micro_batch) <= parts_cost);
    while (!rest.empty()) {
      size_t count = rest.size();
      if (fanout.kind == Fanout::Kind::at_most)
        count = std::min<size_t>(count, static_cast<size_t>(fanout.most));
      if (fanout.kind == Fanout::Kind::automatic && !whole) count = fitting(members, rest, micro_batch);
      add_tree(members, rest.first(count));
      rest = rest.subspan(count);
    }
  }
}

}  // namespace retro::engine
