// Pages of keys and values, shared by reference, and the sequences whose tokens they hold.
//
// A page is kPageRows carry rows. A sequence's tokens lie in runs of positions, one a page; a fork shares its
// parent's pages, and each of the two begins a page of its own with its next token (Kwon et al. 2023, without
// the copy: a run may end anywhere).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace retro::engine {

constexpr int32_t kPageRows = 64;

/// Pages that `rows` tokens of one sequence take at most, where it starts on a page of its own.
constexpr int64_t pages_of(int64_t rows) {
  return (rows + kPageRows - 1) / kPageRows;
}

class KvPages {
 public:
  explicit KvPages(int32_t count);

  int32_t count() const { return static_cast<int32_t>(references_.size()); }
  int32_t unused() const { return static_cast<int32_t>(unused_.size()); }

  /// A page of one reference; Error(internal) when there is none.
  int32_t take();
  void retain(int32_t page) { ++references_[static_cast<size_t>(page)]; }
  void release(int32_t page);
  bool shared(int32_t page) const { return references_[static_cast<size_t>(page)] > 1; }

 private:
  std::vector<int32_t> references_;
  std::vector<int32_t> unused_;  // the last is taken next
};

/// Positions [begin, begin + rows) on the first rows of a page.
struct PageRun {
  int32_t page = 0;
  int32_t begin = 0;
  int32_t rows = 0;
};

/// Where the tokens of a sequence lie. Move-only: it holds references.
class PageTable {
 public:
  explicit PageTable(KvPages& pages) : pages_(&pages) {}
  PageTable(PageTable&& other) noexcept;
  PageTable& operator=(PageTable&& other) noexcept;
  ~PageTable() { truncate(0); }

  std::span<const PageRun> runs() const { return runs_; }
  int32_t rows() const { return runs_.empty() ? 0 : runs_.back().begin + runs_.back().rows; }

  /// Shares all tokens so far.
  PageTable fork() const;
  /// Room for `rows` more tokens, on pages of its own.
  void extend(int32_t rows);
  /// Keeps the first `rows` tokens.
  void truncate(int32_t rows);

 private:
  KvPages* pages_;
  std::vector<PageRun> runs_;
};

}  // namespace retro::engine
