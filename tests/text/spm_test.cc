#include "text/spm.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/text/toy_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace retro::text {
namespace {

using Texts = std::vector<std::string>;

Texts texts_of(const Tokenizer& tokenizer, std::string_view text) {
  Texts texts;
  for (const TokenId id : tokenizer.encode(text, false)) texts.emplace_back(tokenizer.vocabulary().text(id));
  return texts;
}

ToyVocabulary with_pieces(const std::vector<std::pair<std::string, float>>& pieces) {
  auto toy = ToyVocabulary::sentencepiece();
  for (const auto& [text, score] : pieces) toy.add(text, TokenType::normal, score);
  return toy;
}

TEST(SentencePieceBpe, JoinsTheHighestScoreFirst) {
  const Tokenizer tokenizer(with_pieces({{"a", -9}, {"b", -9}, {"c", -9}, {"ab", -2}, {"bc", -1}}).source);
  EXPECT_EQ(texts_of(tokenizer, "abc"), (Texts{"a", "bc"}));
  EXPECT_EQ(texts_of(tokenizer, "abab"), (Texts{"ab", "ab"}));
}

TEST(SentencePieceBpe, JoinsTheLeftmostOfEquals) {
  const Tokenizer tokenizer(with_pieces({{"a", 0}, {"aa", 0}}).source);
  EXPECT_EQ(texts_of(tokenizer, "aaaaa"), (Texts{"aa", "aa", "a"}));
}

TEST(SentencePieceBpe, WritesSpacesAsMarks) {
  const auto toy = with_pieces({{"▁", -5}, {"a", -5}, {"▁a", -1}});
  EXPECT_EQ(texts_of(Tokenizer(toy.source), "a a  a"), (Texts{"a", "▁a", "▁", "▁a"}));
}

TEST(SentencePieceBpe, PutsASpaceInFrontWhereTheFileWantsOne) {
  auto toy = with_pieces({{"▁", -5}, {"a", -5}, {"▁a", -1}});
  const TokenId mark = toy.add("[X]", TokenType::user_defined);
  toy.source.add_space_prefix = true;
  const Tokenizer tokenizer(toy.source);
  EXPECT_EQ(texts_of(tokenizer, "a"), (Texts{"▁a"}));
  EXPECT_EQ(texts_of(tokenizer, "aa[X]a a"), (Texts{"▁a", "a", "[X]", "▁a", "▁a"}));
  EXPECT_EQ(texts_of(tokenizer, ""), Texts{});
  EXPECT_EQ(tokenizer.encode("[X]", false), (std::vector<TokenId>{mark}));
  EXPECT_EQ(tokenizer.encode_runs("a[X]a", {}, {}),
            (std::vector<TokenSpan>{{mark - 1, 0, 1}, {mark, 1, 4}, {mark - 1, 4, 5}}));
}

TEST(SentencePieceBpe, FallsBackToBytes) {
  const Tokenizer tokenizer(with_pieces({{"a", 0}}).source);
  EXPECT_EQ(texts_of(tokenizer, "aé\n"), (Texts{"a", "<0xC3>", "<0xA9>", "<0x0A>"}));
  EXPECT_EQ(texts_of(tokenizer, "a a"), (Texts{"a", "<0xE2>", "<0x96>", "<0x81>", "a"}));
  EXPECT_EQ(tokenizer.encode_runs("aé a", {}, {}), (std::vector<TokenSpan>{{259, 0, 1},
                                                                           {3 + 0xC3, 1, 2},
                                                                           {3 + 0xA9, 2, 3},
                                                                           {3 + 0xE2, 3, 3},
                                                                           {3 + 0x96, 3, 3},
                                                                           {3 + 0x81, 3, 4},
                                                                           {259, 4, 5}}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("aéa😀", false)), "aéa😀");
}

TEST(SentencePieceBpe, WithoutBytesACharacterIsUnknown) {
  ToyVocabulary toy;
  toy.source.model = "llama";
  toy.source.add_space_prefix = false;
  toy.source.add_bos = false;
  toy.add("<unk>", TokenType::unknown);
  toy.add("a", TokenType::normal);
  const Tokenizer tokenizer(toy.source);
  EXPECT_EQ(tokenizer.encode("a😀éa", false), (std::vector<TokenId>{1, 0, 0, 1}));
}

TEST(SentencePieceBpe, NeverJoinsTextIntoControlOrByteTokens) {
  auto toy = with_pieces({{"<", 0},
                          {"s", 0},
                          {">", 0},
                          {"s>", 0},
                          {"<s", 0},
                          {"/", 0},
                          {"</", 0},
                          {"0", 0},
                          {"x", 0},
                          {"A", 0},
                          {"<0", 0},
                          {"<0x", 0},
                          {"<0x0", 0},
                          {"<0x0A", 0}});
  const Tokenizer tokenizer(toy.source);
  EXPECT_EQ(texts_of(tokenizer, "<s></s>"), (Texts{"<s", ">", "</", "s>"}));
  EXPECT_EQ(texts_of(tokenizer, "<0x0A>"), (Texts{"<0x0A", ">"}));
  EXPECT_EQ(tokenizer.encode("<s></s>", true), (std::vector<TokenId>{1, 2}));
}

/// The definition: look at every pair, join the one of the highest score, begin again.
Texts joined_by_definition(std::string_view text, const std::map<std::string, float>& scores) {
  Texts symbols;
  for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
    symbols.emplace_back(text[at] == ' ' ? "▁" : text.substr(at, utf8_length(text[at])));
  }
  for (;;) {
    size_t place = SIZE_MAX;
    float best = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = scores.find(symbols[i] + symbols[i + 1]);
      if (found != scores.end() && (place == SIZE_MAX || found->second > best)) {
        best = found->second;
        place = i;
      }
    }
    if (place == SIZE_MAX) return symbols;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(SentencePieceBpe, EqualsTheDefinitionOnRandomVocabularies) {
  const RandomStream random(11, "spm");
  uint64_t draw = 0;
  const Texts letters{"a", "b", "é", "世", "▁"};
  for (int round = 0; round < 40; ++round) {
    std::map<std::string, float> scores;
    for (const auto& letter : letters) scores[letter] = -1000;
    while (scores.size() < 50) {
      std::string piece;
      for (size_t length = 2 + random.below(draw++, 4); length > 0; --length) {
        piece += letters[random.below(draw++, letters.size())];
      }
      scores[piece] = -static_cast<float>(random.below(draw++, 30));  // with ties
    }
    auto toy = with_pieces({scores.begin(), scores.end()});
    const Tokenizer tokenizer(toy.source);
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (size_t length = 1 + random.below(draw++, i < 50 ? 12 : 120); length > 0; --length) {
        const auto& letter = letters[random.below(draw++, letters.size())];
        text += letter == "▁" ? " " : letter;
      }
      ASSERT_EQ(texts_of(tokenizer, text), joined_by_definition(text, scores)) << text;
    }
  }
}

TEST(SentencePieceBpe, AQuarterMegabyteWithoutABoundaryIsNoTrouble) {
  const Tokenizer tokenizer(with_pieces({{"a", -9}, {"aa", -1}, {"aaaa", -2}, {"aaaaaaaa", -3}}).source);
  EXPECT_EQ(tokenizer.encode(std::string(1 << 18, 'a'), false).size(), size_t{1} << 15);
}

}  // namespace
}  // namespace retro::text
