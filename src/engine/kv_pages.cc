#include "engine/kv_pages.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace retro::engine {

KvPages::KvPages(int32_t count) : references_(static_cast<size_t>(count), 0) {
  unused_.reserve(references_.size());
  for (int32_t page = count; page-- > 0;) unused_.push_back(page);
}

int32_t KvPages::take() {
  if (unused_.empty()) fail(ErrorKind::internal, "no page of keys and values is left");
  const int32_t page = unused_.back();
  unused_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void KvPages::release(int32_t page) {
  if (--references_[static_cast<size_t>(page)] == 0) unused_.push_back(page);
}

PageTable::PageTable(PageTable&& other) noexcept
    : pages_(other.pages_), runs_(std::exchange(other.runs_, {})) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(runs_, other.runs_);
  return *this;
}

PageTable PageTable::fork() const {
  PageTable child(*pages_);
  child.runs_ = runs_;
  for (const PageRun& run : runs_) pages_->retain(run.page);
  return child;
}

void PageTable::extend(int32_t rows) {
  while (rows > 0) {
    if (runs_.empty() || runs_.back().rows == kPageRows || pages_->shared(runs_.back().page)) {
      const int32_t begin = this->rows();
      runs_.push_back({pages_->take(), begin, 0});
    }
    const int32_t fits = std::min(rows, kPageRows - runs_.back().rows);
    runs_.back().rows += fits;
    rows -= fits;
  }
}

void PageTable::truncate(int32_t rows) {
  while (!runs_.empty() && runs_.back().begin >= rows) {
    pages_->release(runs_.back().page);
    runs_.pop_back();
  }
  if (!runs_.empty()) runs_.back().rows = std::min(runs_.back().rows, rows - runs_.back().begin);
}

}  // namespace retro::engine
