#include "text/spm.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "text/utf8.h"

namespace retro::text {

namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr char32_t kSpaceMarkCharacter = 0x2581;
// A pair that shares its bit with a joined one costs time, never correctness.
constexpr size_t kPairBits = size_t{1} << 22;

}  // namespace

/// The characters of a text, and buffers that are reused from piece to piece.
struct SentencePieceBpe::Workspace {
  struct Character {
    size_t escaped;  // where it begins in the escaped text
    size_t source;   // and in the source
  };
  struct Symbol {
    TokenId id;  // kNoToken: not looked up, or no token
    int32_t previous;
    int32_t next;
    int32_t characters;  // 0 once it is part of the symbol before it
  };
  struct Pair {
    double score;  // or the rank, negated
    TokenId whole;
    int32_t left;
    int32_t right;
    int32_t characters;
  };

  std::string escaped;
  std::vector<Character> characters;  // one more than there are, for the ends
  std::vector<Symbol> symbols;
  std::vector<Pair> pairs;  // a heap, the highest score first, the leftmost of equals

  std::string_view text(size_t first, size_t last) const {
    return std::string_view(escaped).substr(characters[first].escaped,
                                            characters[last].escaped - characters[first].escaped);
  }
};

SentencePieceBpe::SentencePieceBpe(const Vocabulary& vocabulary, const VocabularySource& source)
    : vocabulary_(vocabulary), joined_pairs_(kPairBits, false), whole_words_(vocabulary.size()) {
  if (vocabulary.kind() == VocabularyKind::character_bpe) {
    ranked_ = std::make_unique<const Ranked>(
        Ranked{Pretokenizer(pretokenizer_name(source)), MergeTable(vocabulary, source.merges)});
  }
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!vocabulary.is_ordinary(id)) continue;
    const auto text = vocabulary.text(id);
    char32_t left = 0;
    for (size_t at = 0; at < text.size();) {
      const Utf8Step step = utf8_step(text, at);
      if (at > 0) joined_pairs_[pair_bit(left, step.character)] = true;
      left = step.character;
      at += step.length;
    }
  }
}

size_t SentencePieceBpe::pair_bit(char32_t left, char32_t right) const {
  return splitmix64((static_cast<uint64_t>(left) << 32) | right) & (kPairBits - 1);
}

void SentencePieceBpe::encode(std::string_view text, bool space_prefix,
                              std::vector<TokenSpan>& tokens) const {
  if (text.empty()) return;
  Workspace work;
  work.escaped.reserve(text.size() + text.size() / 2 + 3);
  work.characters.reserve(text.size() + 2);
  std::vector<size_t> pieces;  // where the pre-tokenizer's pieces end
  if (ranked_ != nullptr) ranked_->pretokenizer.split(text, pieces);
  auto piece_end = pieces.begin();
  std::vector<size_t> cuts;  // characters before which no merge reaches back
  char32_t left = 0;
  const auto put = [&](std::string_view bytes, char32_t character, size_t source) {
    const bool new_piece = piece_end != pieces.end() && source == *piece_end;
    if (new_piece) ++piece_end;
    if (new_piece || (!work.characters.empty() && !joined_pairs_[pair_bit(left, character)])) {
      cuts.push_back(work.characters.size());
    }
    work.characters.push_back({work.escaped.size(), source});
    work.escaped += bytes;
    left = character;
  };
  if (space_prefix) put(kSpaceMark, kSpaceMarkCharacter, 0);
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.character == ' ') {
      put(kSpaceMark, kSpaceMarkCharacter, at);
    } else {
      put(text.substr(at, step.length), step.character, at);
    }
    at += step.length;
  }
  const size_t count = work.characters.size();
  work.characters.push_back({work.escaped.size(), text.size()});
  cuts.push_back(count);
  size_t first = 0;
  for (const size_t last : cuts) {
    encode_piece(first, last, work, tokens);
    first = last;
  }
}

void SentencePieceBpe::encode_piece(size_t first, size_t last, Workspace& work,
                                    std::vector<TokenSpan>& tokens) const {
  const TokenId whole = vocabulary_.find_ordinary(work.text(first, last));
  const auto source = [&](size_t character) { return work.characters[character].source; };
  if (whole != kNoToken && is_whole(whole, work.text(first, last))) {
    tokens.push_back({whole, source(first), source(last)});
    return;
  }
  merge_piece(first, last, work);
  bool one = false;
  for (int32_t i = 0; i >= 0;) {
    const auto& symbol = work.symbols[static_cast<size_t>(i)];
    const size_t begin = first + static_cast<size_t>(i);
    const size_t end = begin + static_cast<size_t>(symbol.characters);
    one = end - begin == last - first;
    emit(work.text(begin, end), symbol.id, source(begin), source(end), tokens);
    i = symbol.next;
  }
  if (whole != kNoToken) whole_words_.note(whole, one);
}

bool SentencePieceBpe::is_whole(TokenId whole, std::string_view text) const {
  if (whole_words_.look_up(whole) == WholeWords::Note::whole) return true;
  // A piece holds either line ends or none.
  return text.front() == '\n' && ranked_ != nullptr && ranked_->pretokenizer.has(kWholeLineEnds);
}

void SentencePieceBpe::merge_piece(size_t first, size_t last, Workspace& work) const {
  using Pair = Workspace::Pair;
  auto& symbols = work.symbols;
  auto& pairs = work.pairs;
  symbols.clear();
  pairs.clear();
  const auto count = static_cast<int32_t>(last - first);
  for (int32_t i = 0; i < count; ++i) {
    const size_t at = first + static_cast<size_t>(i);
    const TokenId id = ranked_ == nullptr ? kNoToken : vocabulary_.find_ordinary(work.text(at, at + 1));
    symbols.push_back({id, i - 1, i + 1 < count ? i + 1 : -1, 1});
  }
  const auto worse = [](const Pair& a, const Pair& b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  };
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return false;
    const auto& a = symbols[static_cast<size_t>(left)];
    const auto& b = symbols[static_cast<size_t>(right)];
    const int32_t characters = a.characters + b.characters;
    if (ranked_ != nullptr) {
      const auto* const merge = ranked_->merges.find(a.id, b.id);
      if (merge == nullptr) return false;
      pairs.push_back({-static_cast<double>(merge->rank), merge->whole, left, right, characters});
      return true;
    }
    const size_t begin = first + static_cast<size_t>(left);
    const TokenId whole =
        vocabulary_.find_ordinary(work.text(begin, begin + static_cast<size_t>(characters)));
    if (whole == kNoToken) return false;
    pairs.push_back({vocabulary_.score(whole), whole, left, right, characters});
    return true;
  };
  for (int32_t i = 0; i + 1 < count; ++i) consider(i, i + 1);
  std::make_heap(pairs.begin(), pairs.end(), worse);
  while (!pairs.empty()) {
    std::pop_heap(pairs.begin(), pairs.end(), worse);
    const Pair pair = pairs.back();
    pairs.pop_back();
    auto& left = symbols[static_cast<size_t>(pair.left)];
    auto& right = symbols[static_cast<size_t>(pair.right)];
    const bool stale = left.characters == 0 || right.characters == 0 ||
                       left.characters + right.characters != pair.characters;
    if (stale) continue;
    left.id = pair.whole;
    left.characters = pair.characters;
    left.next = right.next;
    right.characters = 0;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = pair.left;
    if (consider(left.previous, pair.left)) std::push_heap(pairs.begin(), pairs.end(), worse);
    if (consider(pair.left, left.next)) std::push_heap(pairs.begin(), pairs.end(), worse);
  }
}

void SentencePieceBpe::emit(std::string_view symbol, TokenId id, size_t begin, size_t end,
                            std::vector<TokenSpan>& tokens) const {
  if (id == kNoToken) id = vocabulary_.find_ordinary(symbol);
  if (id != kNoToken) {
    tokens.push_back({id, begin, end});
    return;
  }
  bool bytes = true;
  for (const char byte : symbol) bytes &= vocabulary_.byte_token(static_cast<uint8_t>(byte)) != kNoToken;
  if (!bytes) {
    tokens.push_back({*vocabulary_.unk(), begin, end});
    return;
  }
  for (size_t i = 0; i < symbol.size(); ++i) {
    // A space is three bytes here and one or none in the source: its last token has what there is.
    const bool same = symbol.size() == end - begin;
    const size_t from = same ? begin + i : begin;
    const size_t to = same ? from + 1 : i + 1 == symbol.size() ? end : begin;
    tokens.push_back({vocabulary_.byte_token(static_cast<uint8_t>(symbol[i])), from, to});
  }
}

}  // namespace retro::text
