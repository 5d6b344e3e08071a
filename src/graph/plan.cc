#include "graph/plan.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace retro::graph {

namespace {

constexpr int64_t kAlignment = 64;

// Strides that are a multiple of 1 KiB put the rows of a tile on the same few cache sets.
int64_t padded_stride(int64_t cols, DType dtype) {
  const int64_t bytes = row_bytes(dtype, cols);
  return bytes % 1024 == 0 ? cols + kAlignment / 4 : cols;
}

std::vector<Placement> lifetimes(const Program& program, int64_t rows) {
  std::vector<Placement> placements(program.values.size());
  std::vector<bool> seen(program.values.size(), false);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const auto touch = [&](ValueId v) {
      if (v == kNone) return;
      Placement& p = placements[static_cast<size_t>(v)];
      if (!seen[static_cast<size_t>(v)]) p.first = i;
      seen[static_cast<size_t>(v)] = true;
      p.last = i;
    };
    std::for_each(program.nodes[i].in.begin(), program.nodes[i].in.end(), touch);
    std::for_each(program.nodes[i].out.begin(), program.nodes[i].out.end(), touch);
  }
  for (size_t v = 0; v < placements.size(); ++v) {
    if (!seen[v]) continue;
    const Value& value = program.values[v];
    Placement& p = placements[v];
    p.stride = padded_stride(value.cols, value.dtype);
    const int64_t bytes = row_bytes(value.dtype, p.stride) * (value.rows > 0 ? value.rows : rows);
    p.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return placements;
}

// Largest first, each at the lowest offset where no value alive at the same time lies.
int64_t place(std::vector<Placement>& placements) {
  std::vector<size_t> order;
  for (size_t v = 0; v < placements.size(); ++v) {
    if (placements[v].bytes > 0) order.push_back(v);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return placements[a].bytes > placements[b].bytes; });
  int64_t arena = 0;
  std::vector<size_t> placed;  // by offset
  for (const size_t v : order) {
    Placement& p = placements[v];
    int64_t at = 0;
    for (const size_t other : placed) {
      const Placement& o = placements[other];
      if (o.last < p.first || p.last < o.first) continue;
      if (o.offset >= at + p.bytes) break;
      at = std::max(at, o.offset + o.bytes);
    }
    p.offset = at;
    arena = std::max(arena, at + p.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), at, [&](int64_t offset, size_t q) {
      return offset < placements[q].offset;
    });
    placed.insert(position, v);
  }
  return arena;
}

bool is_head_tile(const Program& program, size_t value) {
  return program.values[value].rows > 0;
}

}  // namespace

Plan make_plan(const Program& program, int64_t rows) {
  RETRO_CHECK(rows > 0);
  Plan plan;
  plan.placements = lifetimes(program, rows);
  plan.arena_bytes = place(plan.placements);

  std::vector<int64_t> delta(program.nodes.size() + 1, 0);
  for (const Placement& p : plan.placements) {
    if (p.bytes == 0) continue;
    delta[p.first] += p.bytes;
    delta[p.last + 1] -= p.bytes;
  }
  std::partial_sum(delta.begin(), delta.end(), delta.begin());
  const size_t fullest = static_cast<size_t>(std::max_element(delta.begin(), delta.end()) - delta.begin());
  for (size_t v = 0; v < plan.placements.size(); ++v) {
    const Placement& p = plan.placements[v];
    if (p.bytes == 0 || p.first > fullest || p.last < fullest) continue;
    const bool kept = p.first < program.forward_end && p.last >= program.head_end;
    (is_head_tile(program, v) ? plan.logits_bytes : kept ? plan.kept_bytes : plan.working_bytes) += p.bytes;
  }
  plan.working_bytes = plan.arena_bytes - plan.kept_bytes - plan.logits_bytes;
  return plan;
}

}  // namespace retro::graph
