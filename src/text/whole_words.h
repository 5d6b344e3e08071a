// Remembers which words the merges turn into one token.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "text/token_texts.h"

namespace retro::text {

/// For each token, whether merging its own text gives the token itself: most words of a text are tokens, and
/// the merges need to run once for each. A note is a fact of the vocabulary, so threads may race to write it.
class WholeWords {
 public:
  explicit WholeWords(size_t tokens) : notes_(std::make_unique<std::atomic<Note>[]>(tokens)) {}

  enum class Note : uint8_t { untried, whole, in_parts };

  Note look_up(TokenId id) const { return notes_[static_cast<size_t>(id)].load(std::memory_order_relaxed); }
  void note(TokenId id, bool whole) const {
    notes_[static_cast<size_t>(id)].store(whole ? Note::whole : Note::in_parts, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<Note>[]> notes_;
};

}  // namespace retro::text
