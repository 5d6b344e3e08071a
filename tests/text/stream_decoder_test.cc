#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/text/toy_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace retro::text {
namespace {

using Parts = std::vector<std::string>;

/// What each token brings, and the flush.
Parts streamed(const Vocabulary& vocabulary, const std::vector<TokenId>& tokens,
               std::optional<TokenId> previous = std::nullopt) {
  StreamDecoder decoder(vocabulary, previous);
  Parts parts;
  for (const TokenId token : tokens) parts.push_back(decoder.push(token));
  parts.push_back(decoder.flush());
  return parts;
}

TokenId byte(uint8_t value) {
  return 3 + value;
}

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  auto toy = ToyVocabulary::sentencepiece();
  const TokenId hi = toy.add("hi", TokenType::normal);
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(streamed(vocabulary, {hi, byte(0xF0), byte(0x9F), byte(0x98), byte(0x80), hi}),
            (Parts{"hi", "", "", "", "😀", "hi", ""}));
}

TEST(StreamDecoder, ACharacterThatIsCutShortIsOneReplacementMark) {
  auto toy = ToyVocabulary::sentencepiece();
  const TokenId hi = toy.add("hi", TokenType::normal);
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(streamed(vocabulary, {hi, byte(0xF0), byte(0x9F)}), (Parts{"hi", "", "", "\uFFFD"}));
  EXPECT_EQ(streamed(vocabulary, {byte(0xF0), byte(0x9F), hi, byte(0x80)}),
            (Parts{"", "", "\uFFFDhi", "\uFFFD", ""}));
}

TEST(StreamDecoder, ShowsNothingOfControlTokens) {
  auto toy = ToyVocabulary::sentencepiece();
  const TokenId hi = toy.add("hi", TokenType::normal);
  const TokenId tag = toy.add("<b>", TokenType::user_defined);
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(streamed(vocabulary, {1, hi, tag, 0, 2}), (Parts{"", "hi", "<b>", "", "", ""}));
}

TEST(StreamDecoder, TakesAwayTheSpaceThatEncodingPutInFront) {
  auto toy = ToyVocabulary::sentencepiece();
  const TokenId hi = toy.add("▁hi", TokenType::normal);
  toy.source.add_space_prefix = true;
  const Vocabulary vocabulary(toy.source);
  EXPECT_EQ(streamed(vocabulary, {hi, hi, 1, hi}), (Parts{"hi", " hi", "", "hi", ""}));
  EXPECT_EQ(streamed(vocabulary, {hi}, 1), (Parts{"hi", ""}));
  EXPECT_EQ(streamed(vocabulary, {hi}, hi), (Parts{" hi", ""}));
  toy.source.add_space_prefix = false;
  EXPECT_EQ(streamed(Vocabulary(toy.source), {hi}), (Parts{" hi", ""}));
}

TEST(StreamDecoder, RefusesAnIdOutsideTheVocabulary) {
  const auto toy = ToyVocabulary::sentencepiece();
  const Vocabulary vocabulary(toy.source);
  StreamDecoder decoder(vocabulary);
  EXPECT_THROW(decoder.push(-1), Error);
  EXPECT_THROW(decoder.push(259), Error);
}

TEST(StreamDecoder, AnyTokensGiveWellFormedTextThatDecodingAtOnceGivesToo) {
  const auto toy = ToyVocabulary::sentencepiece();
  const Tokenizer tokenizer(toy.source);
  const RandomStream random(5, "stream");
  uint64_t draw = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<TokenId> tokens;
    std::string bytes;
    for (size_t length = random.below(draw++, 12); length > 0; --length) {
      // Leads and continuations meet often.
      const auto value = static_cast<uint8_t>(0x80 + random.below(draw++, 0x80));
      tokens.push_back(byte(value));
      bytes += static_cast<char>(value);
    }
    std::string all;
    for (const auto& part : streamed(tokenizer.vocabulary(), tokens)) {
      ASSERT_TRUE(utf8_valid(part));
      all += part;
    }
    ASSERT_EQ(all, mend_utf8(bytes).text);
    ASSERT_EQ(tokenizer.decode(tokens), all);
  }
}

}  // namespace
}  // namespace retro::text
