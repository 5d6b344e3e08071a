#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "tests/text/toy_vocabulary.h"
#include "text/tokenizer.h"

namespace retro::text {
namespace {

std::vector<std::string> texts_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> texts;
  for (const TokenId id : tokenizer.encode(text, false)) texts.emplace_back(tokenizer.vocabulary().text(id));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ByteLevelBpe, MergesByRankNotByPlace) {
  const Tokenizer tokenizer(ToyVocabulary::byte_level({"b c", "a b", "a bc"}).source);
  EXPECT_EQ(texts_of(tokenizer, "abc"), (Texts{"abc"}));
  EXPECT_EQ(texts_of(tokenizer, "ab"), (Texts{"ab"}));
  EXPECT_EQ(texts_of(tokenizer, "aabcc"), (Texts{"a", "abc", "c"}));
}

TEST(ByteLevelBpe, MergesTheLeftmostOfEquals) {
  const Tokenizer tokenizer(ToyVocabulary::byte_level({"a a"}).source);
  EXPECT_EQ(texts_of(tokenizer, "aaaaa"), (Texts{"aa", "aa", "a"}));
}

TEST(ByteLevelBpe, AWordThatIsATokenStillObeysItsMerges) {
  auto toy = ToyVocabulary::byte_level({"a b", "c d"});
  toy.add("abc", TokenType::normal);
  const Tokenizer tokenizer(toy.source);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(texts_of(tokenizer, "abc"), (Texts{"ab", "c"}));
  toy.source.pre = "llama-bpe";
  EXPECT_EQ(texts_of(Tokenizer(toy.source), "abc"), (Texts{"abc"}));
}

TEST(ByteLevelBpe, NeverMergesIntoAControlToken) {
  auto toy = ToyVocabulary::byte_level({"a b", "ab c"});
  toy.source.types[257] = static_cast<int32_t>(TokenType::control);
  ASSERT_EQ(toy.source.tokens[257], "abc");
  EXPECT_EQ(texts_of(Tokenizer(toy.source), "abc"), (Texts{"ab", "c"}));
  EXPECT_EQ(Tokenizer(toy.source).encode("abc", true), (std::vector<TokenId>{257}));
  toy.source.pre = "llama-bpe";
  EXPECT_EQ(texts_of(Tokenizer(toy.source), "abc"), (Texts{"ab", "c"}));
}

TEST(ByteLevelBpe, NamesAByteThatHasNoToken) {
  auto toy = ToyVocabulary::byte_level({"a b"});
  toy.source.tokens[0x13] = "nothing";
  try {
    Tokenizer(toy.source).encode("ab \x13", false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("0x13"), std::string::npos) << error.what();
  }
}

/// Byte-pair encoding as it is defined: look at every pair, join the best one, begin again.
Texts merged_by_definition(std::string_view word,
                           const std::map<std::pair<std::string, std::string>, size_t>& ranks) {
  Texts symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = SIZE_MAX;
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        place = i;
      }
    }
    if (best == SIZE_MAX) return symbols;
    symbols[place] += symbols[place + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(ByteLevelBpe, EqualsTheDefinitionOnRandomMerges) {
  const RandomStream random(7, "bpe");
  uint64_t draw = 0;
  for (int round = 0; round < 40; ++round) {
    Texts known{"a", "b", "c", "d"};
    Texts merges;
    std::map<std::pair<std::string, std::string>, size_t> ranks;
    while (merges.size() < 60) {
      const std::string left = known[random.below(draw++, known.size())];
      const std::string right = known[random.below(draw++, known.size())];
      if (left.size() + right.size() > 6 || ranks.contains({left, right})) continue;
      ranks[{left, right}] = merges.size();
      merges.push_back(left + " " + right);
      if (std::find(known.begin(), known.end(), left + right) == known.end()) known.push_back(left + right);
    }
    const Tokenizer tokenizer(ToyVocabulary::byte_level(merges).source);
    for (int i = 0; i < 60; ++i) {
      std::string word;
      const size_t length = 1 + random.below(draw++, i < 50 ? 12 : 200);
      while (word.size() < length) word += static_cast<char>('a' + random.below(draw++, 4));
      ASSERT_EQ(texts_of(tokenizer, word), merged_by_definition(word, ranks)) << word;
    }
  }
}

TEST(ByteLevelBpe, AQuarterMegabyteWithoutAWordBoundaryIsNoTrouble) {
  const Tokenizer tokenizer(ToyVocabulary::byte_level({"a a", "aa aa", "aaaa aaaa"}).source);
  EXPECT_EQ(tokenizer.encode(std::string(1 << 18, 'a'), false).size(), size_t{1} << 15);
}

TEST(ByteLevelBpe, ThreadsShareAnEncoder) {
  const Tokenizer tokenizer(ToyVocabulary::byte_level({"a b", "b c", "ab c", "Ġ a", "Ġa b"}).source);
  const std::string text = "abc ab bc abcab ababc cab";
  const auto alone =
      Tokenizer(ToyVocabulary::byte_level({"a b", "b c", "ab c", "Ġ a", "Ġa b"}).source).encode(text, false);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t thread = 0; thread < wrong.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) wrong[thread] += tokenizer.encode(text, false) == alone ? 0 : 1;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace retro::text
