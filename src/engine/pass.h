// Cuts coupled sets into passes of at most `micro_batch` rows and lays out each pass for the device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/op_args.h"
#include "engine/sequence.h"

namespace retro::engine {

/// Tokens [begin, end) of a sequence; `carry_begin` is the carry row of its first token.
struct Piece {
  int32_t sequence = 0;
  int32_t begin = 0;
  int32_t end = 0;
  int32_t carry_begin = 0;
};

/// The passes of a coupled set, in order; kept from set to set, so that steps alike allocate nothing.
class Passes {
 public:
  /// Cuts the rows of `set` into passes; a sequence that does not fit continues in the next one. At least one
  /// pass, which may be empty.
  void cut(std::span<const Sequence> set, int32_t micro_batch);

  size_t size() const { return ends_.size(); }
  std::span<const Piece> operator[](size_t pass) const {
    const size_t begin = pass == 0 ? 0 : ends_[pass - 1];
    return {pieces_.data() + begin, ends_[pass] - begin};
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<size_t> ends_;  // of each pass in pieces_
};

/// How many of `available` independent sequences, the i-th of rows(i) rows, go into one pass together: the
/// longest prefix that fits, at least one.
template <typename Rows>
size_t pass_prefix(size_t available, int32_t micro_batch, const Rows& rows) {
  size_t count = 0;
  for (int64_t sum = 0; count < available; ++count) {
    sum += rows(count);
    if (count > 0 && sum > micro_batch) break;
  }
  return count;
}

/// What gradients of independent sequences take, by the passes they are cut into.
struct PassTotals {
  int32_t widest = 0;  // rows of the widest pass
  int64_t passes = 0;  // forward, head and backward
  int64_t rows = 0;
  int64_t repeated_passes = 0;  // forward once more, for the keys of later passes
  int64_t repeated_rows = 0;

  PassTotals& operator+=(const PassTotals& other);
};

/// Of sequences of `rows` rows each.
PassTotals pass_totals(std::span<const int32_t> rows, int32_t micro_batch);

/// The arrays of one pass, filled for each and reused.
class PassBuffers {
 public:
  explicit PassBuffers(int32_t micro_batch);

  /// Lays out `pieces`; the arrays of the result live here. Queries come with the sequences' dlogprobs.
  const device::PassArgs& build(std::span<const Sequence> set, std::span<const Piece> pieces,
                                device::HeadMode mode, float inverse_temperature = 1);
  /// Brings the pass's log-probabilities, and from `hidden` the rows they were made of, back to the sequences
  /// it was built from.
  void deliver(std::span<const Sequence> set, const device::Matrix& hidden) const;

 private:
  struct Origin {
    int32_t sequence;
    int32_t query;
  };
  void add_rows(std::span<const Sequence> set, const Piece& piece);
  int32_t segment_of(std::span<const Sequence> set, int32_t sequence);

  std::vector<int32_t> tokens_, positions_, carry_rows_;
  std::vector<device::Segment> segments_;
  std::vector<device::Query> queries_;
  std::vector<Origin> origins_;
  /// Of each sequence of the set.
  struct Place {
    int32_t position = 0;  // of its first token
    int32_t carry = 0;     // row of its first token, where the set's own order gives it
    int32_t segment = -1;  // in this pass
  };
  std::vector<Place> places_;
  std::vector<float> dlogprobs_, logprobs_;
  device::PassArgs args_;
};

}  // namespace retro::engine
