#include "text/merges.h"

#include <bit>
#include <string>

#include "base/error.h"
#include "base/random.h"

namespace retro::text {

MergeTable::MergeTable(const Vocabulary& vocabulary, std::span<const std::string_view> merges) {
  if (merges.empty()) {
    fail(ErrorKind::model,
         "tokenizer.ggml.merges is missing; a vocabulary of this kind, which merges by rank, cannot be used "
         "without it");
  }
  slots_.resize(std::bit_ceil(2 * merges.size()));
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto merge = merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      fail(ErrorKind::model, "tokenizer.ggml.merges: merge {}, {}, is not two parts with a space between",
           rank, printable(merge));
    }
    const auto known = [&](std::string_view part) {
      const TokenId id = vocabulary.find(part);
      if (id == kNoToken) {
        fail(ErrorKind::model,
             "tokenizer.ggml.merges: merge {}, {}, needs the token {}, which is not in the vocabulary", rank,
             printable(merge), printable(part));
      }
      return id;
    };
    joined.assign(merge, 0, space);
    joined.append(merge, space + 1);
    const Merge entry{known(merge.substr(0, space)), known(merge.substr(space + 1)), known(joined),
                      static_cast<uint32_t>(rank)};
    const bool ordinary = vocabulary.is_ordinary(entry.left) && vocabulary.is_ordinary(entry.right) &&
                          vocabulary.is_ordinary(entry.whole);
    if (ordinary) insert(entry);
  }
}

size_t MergeTable::slot(TokenId left, TokenId right) const {
  const uint64_t key =
      (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  return splitmix64(key) & (slots_.size() - 1);
}

void MergeTable::insert(const Merge& merge) {
  size_t at = slot(merge.left, merge.right);
  for (; slots_[at].left != kNoToken; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].left == merge.left && slots_[at].right == merge.right) return;
  }
  slots_[at] = merge;
}

const MergeTable::Merge* MergeTable::find(TokenId left, TokenId right) const {
  for (size_t at = slot(left, right); slots_[at].left != kNoToken; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].left == left && slots_[at].right == right) return &slots_[at];
  }
  return nullptr;
}

}  // namespace retro::text
