#include "text/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "text/bpe.h"
#include "text/spm.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

namespace retro::text {

namespace {

// Positions within a piece are kept in 32 bits.
constexpr size_t kMostBytes = size_t{1} << 30;

/// Merges touching runs of the template, so that a token may lie across their seam.
std::vector<TextRun> template_stretches(std::string_view text, std::span<const TextRun> runs) {
  std::vector<TextRun> stretches;
  size_t last_end = 0;
  for (const TextRun& run : runs) {
    RETRO_CHECK(last_end <= run.begin && run.begin <= run.end && run.end <= text.size());
    last_end = run.end;
    if (!run.from_template) continue;
    if (!stretches.empty() && stretches.back().end == run.begin) {
      stretches.back().end = run.end;
    } else {
      stretches.push_back(run);
    }
  }
  return stretches;
}

bool lies_within(std::span<const TextRun> stretches, size_t begin, size_t end) {
  const auto after = std::partition_point(stretches.begin(), stretches.end(),
                                          [&](const TextRun& run) { return run.begin <= begin; });
  return after != stretches.begin() && end <= std::prev(after)->end;
}

TokenId id_of(TokenId token) {
  return token;
}
TokenId id_of(const TokenSpan& token) {
  return token.id;
}

template <typename Token>
void put_bos(const Vocabulary& vocabulary, std::vector<Token>& tokens, const Token& bos) {
  size_t leading = 0;
  while (leading < tokens.size() && id_of(tokens[leading]) == *vocabulary.bos()) ++leading;
  if (leading > 1) tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(leading - 1));
  if (leading == 0 && vocabulary.add_bos()) tokens.insert(tokens.begin(), bos);
}

}  // namespace

Tokenizer::Tokenizer(const VocabularySource& source)
    : vocabulary_(std::make_unique<const Vocabulary>(source)), added_(*vocabulary_) {
  if (vocabulary_->kind() == VocabularyKind::byte_level_bpe) {
    bpe_ = std::make_unique<const ByteLevelBpe>(*vocabulary_, source);
  } else {
    spm_ = std::make_unique<const SentencePieceBpe>(*vocabulary_, source);
  }
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool parse_control) const {
  const TextRun whole{0, text.size(), parse_control};
  return ids_of(encode_runs(text, {&whole, 1}, {}));
}

std::vector<TokenSpan> Tokenizer::encode_runs(std::string_view text, std::span<const TextRun> runs,
                                              std::span<const size_t> cuts) const {
  if (text.size() > kMostBytes) {
    fail(ErrorKind::data, "a text of {} bytes is too large to tokenize at once; at most {} (1 GiB)",
         text.size(), kMostBytes);
  }
  const auto stretches = template_stretches(text, runs);
  const auto allowed = [&](TokenId id, size_t begin, size_t end) {
    return !vocabulary_->is_control(id) || lies_within(stretches, begin, end);
  };
  std::vector<TokenSpan> tokens;
  tokens.reserve(text.size() / 4 + 1);
  bool space_prefix = vocabulary_->add_space_prefix();
  const auto encode_text = [&](size_t begin, size_t end) {
    if (begin == end) return;
    encode_fragment(text, {begin, end, space_prefix}, tokens);
    space_prefix = false;
  };
  size_t begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t end = i < cuts.size() ? cuts[i] : text.size();
    RETRO_CHECK(begin <= end && end <= text.size());
    for (const TokenSpan& found : added_.find(text, begin, end, allowed)) {
      encode_text(begin, found.begin);
      tokens.push_back(found);
      space_prefix = vocabulary_->add_space_prefix();
      begin = found.end;
    }
    encode_text(begin, end);
    begin = end;
  }
  return tokens;
}

void Tokenizer::encode_fragment(std::string_view text, const Fragment& fragment,
                                std::vector<TokenSpan>& tokens) const {
  const auto part = text.substr(fragment.begin, fragment.end - fragment.begin);
  const size_t first = tokens.size();
  const auto encode_part = [&](std::string_view well_formed) {
    if (bpe_ != nullptr) {
      bpe_->encode(well_formed, tokens);
    } else {
      spm_->encode(well_formed, fragment.space_prefix, tokens);
    }
  };
  if (utf8_valid(part)) {
    encode_part(part);
    for (size_t i = first; i < tokens.size(); ++i) {
      tokens[i].begin += fragment.begin;
      tokens[i].end += fragment.begin;
    }
    return;
  }
  const MendedText mended = mend_utf8(part);
  encode_part(mended.text);
  for (size_t i = first; i < tokens.size(); ++i) {
    tokens[i].begin = fragment.begin + mended.origin[tokens[i].begin];
    tokens[i].end = fragment.begin + mended.origin[tokens[i].end];
  }
}

void Tokenizer::with_bos(std::vector<TokenId>& tokens) const {
  if (vocabulary_->bos()) put_bos(*vocabulary_, tokens, *vocabulary_->bos());
}

void Tokenizer::with_bos(std::vector<TokenSpan>& tokens) const {
  if (vocabulary_->bos()) put_bos(*vocabulary_, tokens, TokenSpan{*vocabulary_->bos(), 0, 0});
}

std::vector<TokenId> Tokenizer::encode_document(std::string_view text) const {
  auto tokens = encode(text, false);
  with_bos(tokens);
  if (vocabulary_->add_eos()) tokens.push_back(*vocabulary_->eos());
  return tokens;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens) const {
  StreamDecoder decoder(*vocabulary_);
  std::string text;
  for (const TokenId token : tokens) text += decoder.push(token);
  return text + decoder.flush();
}

std::vector<TokenId> ids_of(std::span<const TokenSpan> spans) {
  std::vector<TokenId> ids;
  ids.reserve(spans.size());
  for (const TokenSpan& span : spans) ids.push_back(span.id);
  return ids;
}

}  // namespace retro::text
