#include "text/bpe.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "text/byte_alphabet.h"

namespace retro::text {

/// Buffers that are reused from piece to piece.
struct ByteLevelBpe::Workspace {
  struct Symbol {
    TokenId id;  // kNoToken once it is part of the symbol before it
    int32_t previous;
    int32_t next;
    size_t end;  // bytes [own index, end) of the piece
  };
  struct Pair {
    uint32_t rank;
    int32_t left;
    int32_t right;
    const MergeTable::Merge* merge;
  };

  std::vector<size_t> ends;
  std::string characters;
  std::vector<Symbol> symbols;
  std::vector<Pair> pairs;  // a heap, the best merge first, the leftmost of equals
};

ByteLevelBpe::ByteLevelBpe(const Vocabulary& vocabulary, const VocabularySource& source)
    : vocabulary_(vocabulary),
      pretokenizer_(source.pre),
      merges_(vocabulary, source.merges),
      whole_words_(vocabulary.size()) {}

void ByteLevelBpe::encode(std::string_view text, std::vector<TokenSpan>& tokens) const {
  Workspace work;
  pretokenizer_.split(text, work.ends);
  size_t begin = 0;
  for (const size_t end : work.ends) {
    encode_piece(text, begin, end, work, tokens);
    begin = end;
  }
}

void ByteLevelBpe::encode_piece(std::string_view text, size_t begin, size_t end, Workspace& work,
                                std::vector<TokenSpan>& tokens) const {
  TokenId whole = kNoToken;
  if (end - begin <= vocabulary_.longest_text()) {
    work.characters.clear();
    append_byte_characters(work.characters, text.substr(begin, end - begin));
    whole = vocabulary_.find_ordinary(work.characters);
  }
  if (whole != kNoToken) {
    if (pretokenizer_.has(kIgnoresMerges) || whole_words_.look_up(whole) == WholeWords::Note::whole) {
      tokens.push_back({whole, begin, end});
      return;
    }
  }
  merge_piece(text, begin, end, work);
  const size_t first = tokens.size();
  for (int32_t i = 0; i >= 0;) {
    const auto& symbol = work.symbols[static_cast<size_t>(i)];
    tokens.push_back({symbol.id, begin + static_cast<size_t>(i), begin + symbol.end});
    i = symbol.next;
  }
  if (whole != kNoToken) whole_words_.note(whole, tokens.size() == first + 1);
}

void ByteLevelBpe::merge_piece(std::string_view text, size_t begin, size_t end, Workspace& work) const {
  using Pair = Workspace::Pair;
  auto& symbols = work.symbols;
  auto& pairs = work.pairs;
  symbols.clear();
  pairs.clear();
  const auto count = static_cast<int32_t>(end - begin);
  for (int32_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(text[begin + static_cast<size_t>(i)]);
    const TokenId id = vocabulary_.byte_token(byte);
    if (id == kNoToken) {
      fail(ErrorKind::data,
           "the text holds the byte 0x{:02x} at offset {}, for which the model's vocabulary has no token; "
           "remove the "
           "character",
           byte, begin + static_cast<size_t>(i));
    }
    symbols.push_back({id, i - 1, i + 1 < count ? i + 1 : -1, static_cast<size_t>(i) + 1});
  }
  const auto worse = [](const Pair& a, const Pair& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return false;
    const auto* merge =
        merges_.find(symbols[static_cast<size_t>(left)].id, symbols[static_cast<size_t>(right)].id);
    if (merge != nullptr) pairs.push_back({merge->rank, left, right, merge});
    return merge != nullptr;
  };
  for (int32_t i = 0; i + 1 < count; ++i) consider(i, i + 1);
  std::make_heap(pairs.begin(), pairs.end(), worse);
  while (!pairs.empty()) {
    std::pop_heap(pairs.begin(), pairs.end(), worse);
    const Pair pair = pairs.back();
    pairs.pop_back();
    auto& left = symbols[static_cast<size_t>(pair.left)];
    auto& right = symbols[static_cast<size_t>(pair.right)];
    if (left.id != pair.merge->left || right.id != pair.merge->right || left.next != pair.right) continue;
    left.id = pair.merge->whole;
    left.end = right.end;
    left.next = right.next;
    right.id = kNoToken;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = pair.left;
    if (consider(left.previous, pair.left)) std::push_heap(pairs.begin(), pairs.end(), worse);
    if (consider(pair.left, left.next)) std::push_heap(pairs.begin(), pairs.end(), worse);
  }
}

}  // namespace retro::text
