#include "engine/pass.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace retro::engine {

void Passes::cut(std::span<const Sequence> set, int32_t micro_batch) {
  pieces_.clear();
  ends_.clear();
  int32_t room = micro_batch;
  int32_t carry = 0;
  for (size_t s = 0; s < set.size(); ++s) {
    const int32_t rows = set[s].rows();
    for (int32_t begin = 0; begin < rows;) {
      if (room == 0) {
        ends_.push_back(pieces_.size());
        room = micro_batch;
      }
      const int32_t end = std::min(rows, begin + room);
      pieces_.push_back({static_cast<int32_t>(s), begin, end, carry});
      room -= end - begin;
      begin = end;
    }
    carry += rows;
  }
  ends_.push_back(pieces_.size());
}

PassTotals& PassTotals::operator+=(const PassTotals& other) {
  widest = std::max(widest, other.widest);
  passes += other.passes;
  rows += other.rows;
  repeated_passes += other.repeated_passes;
  repeated_rows += other.repeated_rows;
  return *this;
}

PassTotals pass_totals(std::span<const int32_t> rows, int32_t micro_batch) {
  PassTotals totals;
  while (!rows.empty()) {
    const size_t count = pass_prefix(rows.size(), micro_batch, [&](size_t i) { return rows[i]; });
    const int32_t sum = std::accumulate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count), 0);
    const int64_t passes = std::max(1, (sum + micro_batch - 1) / micro_batch);
    totals += {std::min(sum, micro_batch), passes, sum, passes - 1, (passes - 1) * micro_batch};
    rows = rows.subspan(count);
  }
  return totals;
}

PassBuffers::PassBuffers(int32_t micro_batch) {
  const auto n = static_cast<size_t>(micro_batch);
  for (auto* v : {&tokens_, &positions_, &carry_rows_}) v->reserve(n);
  segments_.reserve(n);
  queries_.reserve(n);
  origins_.reserve(n);
  dlogprobs_.reserve(n);
  logprobs_.reserve(n);
}

// An ancestor may have no rows in this pass: its keys are read only.
int32_t PassBuffers::segment_of(std::span<const Sequence> set, int32_t sequence) {
  if (sequence < 0) return -1;
  Place& place = places_[static_cast<size_t>(sequence)];
  if (place.segment < 0) {
    const int32_t parent = segment_of(set, set[static_cast<size_t>(sequence)].parent);
    const auto row = static_cast<int32_t>(tokens_.size());
    place.segment = static_cast<int32_t>(segments_.size());
    segments_.push_back({parent, place.position, place.carry, row, row, place.position});
  }
  return place.segment;
}

void PassBuffers::add_rows(std::span<const Sequence> set, const Piece& piece) {
  const Sequence& sequence = set[static_cast<size_t>(piece.sequence)];
  Place& place = places_[static_cast<size_t>(piece.sequence)];
  const int32_t parent = segment_of(set, sequence.parent);
  const auto row_begin = static_cast<int32_t>(tokens_.size());
  for (int32_t p = piece.begin; p < piece.end; ++p) {
    tokens_.push_back(sequence.tokens[static_cast<size_t>(p)]);
    positions_.push_back(place.position + p);
    carry_rows_.push_back(piece.carry_begin + p);
  }
  place.segment = static_cast<int32_t>(segments_.size());
  segments_.push_back({parent, place.position, piece.carry_begin, row_begin,
                       static_cast<int32_t>(tokens_.size()), place.position + piece.begin,
                       piece.end - piece.begin == 1});
  const auto first = std::lower_bound(sequence.targets.begin(), sequence.targets.end(), piece.begin + 1);
  for (auto target = first; target != sequence.targets.end() && *target <= piece.end; ++target) {
    const auto query = static_cast<int32_t>(target - sequence.targets.begin());
    queries_.push_back(
        {row_begin + *target - 1 - piece.begin, sequence.tokens[static_cast<size_t>(*target)]});
    origins_.push_back({piece.sequence, query});
    const bool known = !sequence.dlogprobs.empty();
    dlogprobs_.push_back(known ? sequence.dlogprobs[static_cast<size_t>(query)] : 0.0F);
  }
}

const device::PassArgs& PassBuffers::build(std::span<const Sequence> set, std::span<const Piece> pieces,
                                           device::HeadMode mode, float inverse_temperature) {
  tokens_.clear();
  positions_.clear();
  carry_rows_.clear();
  segments_.clear();
  queries_.clear();
  origins_.clear();
  dlogprobs_.clear();
  places_.clear();
  int32_t carry = 0;
  for (const Sequence& sequence : set) {
    RETRO_CHECK(sequence.parent < static_cast<int32_t>(places_.size()));
    const auto parent = static_cast<size_t>(sequence.parent);
    places_.push_back({sequence.parent < 0 ? 0 : places_[parent].position + set[parent].rows(), carry, -1});
    carry += sequence.rows();
  }
  for (const Piece& piece : pieces) add_rows(set, piece);
  logprobs_.assign(queries_.size(), 0.0F);
  args_ = {};
  args_.rows = static_cast<int32_t>(tokens_.size());
  args_.tokens = tokens_;
  args_.positions = positions_;
  args_.carry_rows = carry_rows_;
  args_.segments = segments_;
  args_.queries = queries_;
  args_.dlogprobs = dlogprobs_;
  args_.logprobs = logprobs_;
  args_.head_mode = mode;
  args_.inverse_temperature = inverse_temperature;
  return args_;
}

void PassBuffers::deliver(std::span<const Sequence> set, const device::Matrix& hidden) const {
  for (size_t i = 0; i < origins_.size(); ++i) {
    const Sequence& sequence = set[static_cast<size_t>(origins_[i].sequence)];
    const auto query = static_cast<size_t>(origins_[i].query);
    sequence.logprobs[query] = logprobs_[i];
    if (sequence.features.empty()) continue;
    const auto width = static_cast<size_t>(hidden.cols);
    std::copy_n(hidden.f32() + queries_[i].row * hidden.stride, width, &sequence.features[query * width]);
  }
}

}  // namespace retro::engine
