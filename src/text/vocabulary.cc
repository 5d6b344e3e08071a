#include "text/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/pretokenizer_table.h"
#include "text/utf8.h"

namespace retro::text {

namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece texts

/// Names under which models ship the end of a turn, the most specific first.
constexpr std::string_view kTurnEnds[] = {
    "<|eot_id|>",   "<|im_end|>", "<|end|>", "<end_of_turn>", "<end_of_utterance>",    "<EOT>",
    "_<EOT>",       "[EOT]",      "<turn|>", "[e~[",          "<｜end▁of▁sentence｜>", "<|end_of_text|>",
    "<|endoftext|>"};

/// Names that end an answer besides kTurnEnds: ends of text, of messages, of tool calls, and the paddings and
/// separators of fill-in-the-middle training.
constexpr std::string_view kOtherEnds[] = {"</s>",          "<eos>",       "[EOS]",
                                           "<|eom_id|>",    "<|return|>",  "<|call|>",
                                           "<|calls|>",     "<|flush|>",   "<|tool_response>",
                                           "<|fim_pad|>",   "<fim-pad>",   "<fim_pad>",
                                           "<PAD>",         "[PAD]",       "<|fim_repo|>",
                                           "<|repo_name|>", "<fim-repo>",  "<REPO>",
                                           "<reponame>",    "<|file_sep|>"};

/// Control tokens that files sometimes type as text.
constexpr std::string_view kFillInTheMiddle[] = {
    "<|fim_prefix|>", "<fim-prefix>",    "<fim_prefix>",    "<｜fim▁begin｜>", "<PRE>",
    "▁<PRE>",         "<|code_prefix|>", "<|prefix|>",      "<|fim_suffix|>",  "<fim-suffix>",
    "<fim_suffix>",   "<｜fim▁hole｜>",  "<SUF>",           "▁<SUF>",          "<|code_suffix|>",
    "<|suffix|>",     "<|fim_middle|>",  "<fim-middle>",    "<fim_middle>",    "<｜fim▁end｜>",
    "<MID>",          "▁<MID>",          "<|code_middle|>", "<|middle|>"};

VocabularyKind kind_of(const VocabularySource& source) {
  if (source.model == "llama") return VocabularyKind::sentencepiece;
  if (source.model == "gpt2" || source.model == "gemma4") {
    const auto* const rules = find_pretokenizer(pretokenizer_name(source));
    const bool characters = rules != nullptr && (rules->traits & kMarksSpaces) != 0;
    return characters ? VocabularyKind::character_bpe : VocabularyKind::byte_level_bpe;
  }
  fail(ErrorKind::model,
       "tokenizer.ggml.model is {}; this program reads 'gpt2' and 'gemma4' (BPE by rank) and 'llama' "
       "(SentencePiece-style BPE), no WordPiece ('bert'), Unigram ('t5'), RWKV, PLaMo or other vocabularies",
       printable(source.model));
}

void check_length(std::string_view key, size_t length, size_t tokens) {
  if (length != tokens) {
    fail(ErrorKind::model, "tokenizer.ggml.{} has {} entries for {} tokens; it needs one a token", key,
         length, tokens);
  }
}

/// The byte that "<0x0A>" names.
std::optional<uint8_t> named_byte(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return {};
  const int high = digit(text[3]);
  const int low = digit(text[4]);
  if (high < 0 || low < 0) return {};
  return static_cast<uint8_t>(16 * high + low);
}

void append_with_spaces(std::string& out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t mark = std::min(text.find(kSpaceMark, at), text.size());
    out.append(text, at, mark - at);
    if (mark < text.size()) out += ' ';
    at = mark + kSpaceMark.size();
  }
}

}  // namespace

std::string_view pretokenizer_name(const VocabularySource& source) {
  return source.model == "gemma4" ? "gemma4" : source.pre;
}

Vocabulary::Vocabulary(const VocabularySource& source) : kind_(kind_of(source)), texts_(source.tokens) {
  if (size() == 0) fail(ErrorKind::model, "tokenizer.ggml.tokens is empty; a model needs at least one token");
  if (kind_ == VocabularyKind::sentencepiece && source.scores.empty()) {
    fail(ErrorKind::model, "tokenizer.ggml.scores is missing; a 'llama' vocabulary merges by score");
  }
  if (!source.scores.empty()) check_length("scores", source.scores.size(), size());
  for (size_t id = 0; id < source.scores.size(); ++id) {
    if (std::isnan(source.scores[id])) {
      fail(ErrorKind::model, "tokenizer.ggml.scores: the score of token {} is not a number", id);
    }
  }
  if (kind_ == VocabularyKind::sentencepiece) scores_ = source.scores;
  read_types(source);
  read_ids(source);
  read_well_known_names(source);
  read_bytes();
  read_byte_tokens();
}

void Vocabulary::read_types(const VocabularySource& source) {
  types_.assign(size(), TokenType::normal);
  if (!source.types.empty()) check_length("token_type", source.types.size(), size());
  for (size_t id = 0; id < source.types.size(); ++id) {
    const int32_t type = source.types[id];
    if (type < 0 || type > static_cast<int32_t>(TokenType::byte)) {
      fail(ErrorKind::model, "tokenizer.ggml.token_type: token {} has type {}; types go from 0 to 6", id,
           type);
    }
    types_[id] = static_cast<TokenType>(type);
  }
  if (!source.types.empty() || kind_ == VocabularyKind::byte_level_bpe) return;
  for (size_t id = 0; id < size(); ++id) {
    if (named_byte(text(static_cast<TokenId>(id)))) types_[id] = TokenType::byte;
  }
}

void Vocabulary::read_ids(const VocabularySource& source) {
  const auto read = [&](std::string_view key, std::optional<uint32_t> id,
                        std::optional<uint32_t> by_default) {
    if (id && *id >= size()) {
      fail(ErrorKind::model, "tokenizer.ggml.{} is {}; the vocabulary has {} tokens", key, *id, size());
    }
    // A customary id counts only where the file does not say that its token is text.
    if (!id && by_default && *by_default < size() &&
        (source.types.empty() || is_control(static_cast<TokenId>(*by_default)))) {
      id = by_default;
    }
    return id ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
  };
  const bool sentencepiece = kind_ == VocabularyKind::sentencepiece;
  const auto in_sentencepiece = [&](uint32_t id) { return sentencepiece ? std::optional(id) : std::nullopt; };
  bos_ = read("bos_token_id", source.bos, in_sentencepiece(1));
  eos_ = read("eos_token_id", source.eos, in_sentencepiece(2));
  unk_ = read("unknown_token_id", source.unk, in_sentencepiece(0));
  eot_ = read("eot_token_id", source.eot, {});
  pad_ = read("padding_token_id", source.pad, {});
  const auto eom = read("eom_token_id", source.eom, {});

  eog_.assign(size(), false);
  for (const auto id : {eos_, eot_, eom}) {
    if (id) eog_[static_cast<size_t>(*id)] = true;
  }
  for (const uint32_t id : source.more_eog) {
    eog_[static_cast<size_t>(*read("eog_token_ids", id, {}))] = true;
  }

  const auto* const rules = sentencepiece ? nullptr : find_pretokenizer(pretokenizer_name(source));
  const uint8_t traits = rules == nullptr ? uint8_t{0} : rules->traits;
  add_bos_ = source.add_bos.value_or(bos_ && (sentencepiece || (traits & kBegins) != 0));
  if (bos_ && (traits & kAlwaysBegins) != 0) add_bos_ = true;
  add_eos_ = source.add_eos.value_or(false);
  add_space_prefix_ = sentencepiece && source.add_space_prefix.value_or(true);
  if (add_bos_ && !bos_) {
    fail(ErrorKind::model,
         "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing");
  }
  if (add_eos_ && !eos_) {
    fail(ErrorKind::model,
         "tokenizer.ggml.add_eos_token is true, but tokenizer.ggml.eos_token_id is missing");
  }
}

void Vocabulary::read_well_known_names(const VocabularySource& source) {
  const auto make_control = [&](TokenId id) { types_[static_cast<size_t>(id)] = TokenType::control; };
  for (const auto name : kTurnEnds) {
    const TokenId id = find(name);
    if (id == kNoToken) continue;
    make_control(id);
    eog_[static_cast<size_t>(id)] = true;
    if (!eot_) eot_ = id;
  }
  for (const auto name : kOtherEnds) {
    const TokenId id = find(name);
    if (id == kNoToken) continue;
    // To a model that has seen HTML, "</s>" is the end of struck-out text, and its file says so.
    if (name == "</s>" && type(id) != TokenType::control && id != eos_) continue;
    make_control(id);
    eog_[static_cast<size_t>(id)] = true;
  }
  for (const auto name : kFillInTheMiddle) {
    if (const TokenId id = find(name); id != kNoToken) make_control(id);
  }
  // Without types, only the ids tell which tokens are not text.
  if (!source.types.empty()) return;
  for (const auto id : {bos_, eos_, pad_}) {
    if (id) make_control(*id);
  }
  if (unk_) types_[static_cast<size_t>(*unk_)] = TokenType::unknown;
}

void Vocabulary::read_bytes() {
  size_t total = 0;
  for (size_t id = 0; id < size(); ++id) total += texts_[static_cast<TokenId>(id)].size();
  bytes_.reserve(size(), total);
  std::string spelled;
  for (size_t i = 0; i < size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto spelling = text(id);
    const auto byte = type(id) == TokenType::byte ? named_byte(spelling) : std::nullopt;
    if (byte) {
      spelled.assign(1, static_cast<char>(*byte));
    } else if (is_control(id) || type(id) == TokenType::user_defined) {
      spelled = spelling;
    } else if (kind_ != VocabularyKind::byte_level_bpe) {
      spelled.clear();
      append_with_spaces(spelled, spelling);
    } else {
      // An added token that the file calls normal may hold characters outside the alphabet.
      spelled = bytes_of_characters(spelling).value_or(std::string(spelling));
    }
    bytes_.push_back(spelled);
  }
}

void Vocabulary::read_byte_tokens() {
  size_t missing = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    TokenId id = kNoToken;
    if (kind_ == VocabularyKind::byte_level_bpe) {
      id = find_ordinary(byte_character(static_cast<uint8_t>(byte)));
    } else {
      id = find(fmt::format("<0x{:02X}>", byte));
      if (id != kNoToken && type(id) != TokenType::byte) id = kNoToken;
    }
    byte_tokens_[byte] = id;
    missing += id == kNoToken ? 1 : 0;
  }
  if (kind_ != VocabularyKind::byte_level_bpe && missing > 0 && !unk_) {
    fail(ErrorKind::model,
         "the vocabulary lacks {} of the 256 byte tokens <0x00> to <0xFF> and has no unknown token; text "
         "outside "
         "it could not be written",
         missing);
  }
}

bool Vocabulary::is_ordinary(TokenId id) const {
  const TokenType type_of = type(id);
  return type_of != TokenType::control && type_of != TokenType::unknown && type_of != TokenType::byte;
}

TokenId Vocabulary::find_ordinary(std::string_view text) const {
  const TokenId id = find(text);
  return id != kNoToken && is_ordinary(id) ? id : kNoToken;
}

std::vector<TokenId> Vocabulary::eog_ids() const {
  std::vector<TokenId> ids;
  for (size_t id = 0; id < size(); ++id) {
    if (eog_[id]) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

}  // namespace retro::text
