#include "text/pretokenize.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"

namespace retro::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view name, std::string_view text) {
  std::vector<size_t> ends;
  Pretokenizer(name).split(text, ends);
  Pieces pieces;
  size_t begin = 0;
  for (const size_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return pieces;
}

TEST(Pretokenizer, Gpt2KeepsSpaceWithTheWordThatFollows) {
  EXPECT_EQ(split("gpt-2", "I'll go  to\n\nmy 12ab!? x "),
            (Pieces{"I", "'ll", " go", " ", " to", "\n", "\n", "my", " 12", "ab", "!?", " x", " "}));
  EXPECT_EQ(split("gpt-2", "I'LL"), (Pieces{"I", "'", "LL"}));
}

TEST(Pretokenizer, SmollmSplitsEveryDigit) {
  EXPECT_EQ(split("smollm", "in 1789, it's ½٣"),
            (Pieces{"in", " ", "1", "7", "8", "9", ",", " it", "'s", " ", "½", "٣"}));
}

TEST(Pretokenizer, LlamaBpeTakesDigitsByThreeAndOneMarkWithAWord) {
  EXPECT_EQ(split("llama-bpe", "x=12345 (foo'RE)\r\n\n  bar\tbaz"),
            (Pieces{"x", "=", "123", "45", " (", "foo", "'RE", ")\r\n\n", " ", " bar", "\tbaz"}));
  EXPECT_EQ(split("llama-bpe", "!?\n\nx"), (Pieces{"!?\n\n", "x"}));
}

TEST(Pretokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_EQ(split("qwen2", "x=123 'S"), (Pieces{"x", "=", "1", "2", "3", " '", "S"}));
  EXPECT_EQ(split("qwen2", "he'S"), (Pieces{"he", "'S"}));
}

TEST(Pretokenizer, DefaultCutsPunctuationFirstAndDigitsByThree) {
  EXPECT_EQ(split("default", "it's 12345, x=$4"),
            (Pieces{"it", "'", "s", " ", "123", "45", ",", " x", "=$", "4"}));
  EXPECT_EQ(split("", "a.b"), split("default", "a.b"));
}

TEST(Pretokenizer, WhiteSpaceIsUnicodes) {
  // U+0085, U+00A0, U+2003, U+2028 and U+3000 are white space, U+180E and U+200B are not.
  EXPECT_EQ(split("gpt-2", "a\u0085b\u00A0c\u2003d\u2028e\u3000f"),
            (Pieces{"a", "\u0085", "b", "\u00A0", "c", "\u2003", "d", "\u2028", "e", "\u3000", "f"}));
  EXPECT_EQ(split("gpt-2", "\u180E\u200B!"), (Pieces{"\u180E\u200B!"}));
}

TEST(Pretokenizer, RefusesAnUnknownNameWithTheKnownOnes) {
  try {
    const Pretokenizer unknown("gpt-5");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    EXPECT_EQ(error.what(),
              "tokenizer.ggml.pre is 'gpt-5'; the pre-tokenizers known here are " + known_pretokenizers());
    EXPECT_NE(known_pretokenizers().find("gpt-4o, llama4"), std::string::npos);
  }
}

TEST(Pretokenizer, EmptyTextHasNoPiece) {
  EXPECT_EQ(split("llama-bpe", ""), Pieces{});
}

// Each shape is one whose greedy match backs off; a pattern that did so from every position would not end.
TEST(Pretokenizer, LongRunsAreLinear) {
  constexpr size_t kLength = 200'000;
  std::istringstream names(known_pretokenizers());
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    for (const std::string unit : {" ", "\n", "a", "!", "é", "\xF0\x9F\x98\x80", "1", "\r\n ", " \t", "'"}) {
      std::string text;
      while (text.size() < kLength) text += unit;
      text += "x";
      std::vector<size_t> ends;
      Pretokenizer(name).split(text, ends);
      ASSERT_FALSE(ends.empty());
      EXPECT_EQ(ends.back(), text.size()) << name << " " << unit;
    }
  }
}

}  // namespace
}  // namespace retro::text
