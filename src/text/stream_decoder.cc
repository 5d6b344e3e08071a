#include "text/stream_decoder.h"

#include "base/error.h"
#include "text/utf8.h"

namespace retro::text {

namespace {

bool is_added(const Vocabulary& vocabulary, TokenId token) {
  return vocabulary.is_control(token) || vocabulary.type(token) == TokenType::user_defined;
}

}  // namespace

StreamDecoder::StreamDecoder(const Vocabulary& vocabulary, std::optional<TokenId> previous)
    : vocabulary_(vocabulary),
      drop_space_(vocabulary.add_space_prefix() && (!previous || is_added(vocabulary, *previous))) {}

std::string StreamDecoder::push(TokenId token) {
  if (!vocabulary_.contains(token)) {
    fail(ErrorKind::internal, "token {} is outside the vocabulary of {}", token, vocabulary_.size());
  }
  const bool drop_space = drop_space_;
  drop_space_ = vocabulary_.add_space_prefix() && is_added(vocabulary_, token);
  std::string text;
  if (vocabulary_.is_control(token)) return text;
  auto bytes = vocabulary_.bytes(token);
  if (drop_space && !drop_space_ && bytes.starts_with(' ')) bytes.remove_prefix(1);
  held_ += bytes;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = utf8_step(held_, at);
    if (step.kind == Utf8Step::Kind::cut) break;
    if (step.kind == Utf8Step::Kind::character) {
      text.append(held_, at, step.length);
    } else {
      text += kReplacementCharacter;
    }
    at += step.length;
  }
  held_.erase(0, at);
  return text;
}

std::string StreamDecoder::flush() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? std::string(kReplacementCharacter) : std::string();
}

}  // namespace retro::text
