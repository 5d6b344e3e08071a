#include "text/utf8.h"

#include <gtest/gtest.h>

namespace retro::text {
namespace {

const std::string kFffd(kReplacementCharacter);

TEST(Utf8, AcceptsWhatUnicodeCallsWellFormed) {
  for (const char* text :
       {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "eight by\xC3\xA9te words"}) {
    EXPECT_TRUE(utf8_valid(text)) << text;
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatIsBeyondUnicode) {
  for (const char* text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                           "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3",
                           "\xE2\x96", "\xF0\x9F\x98", "eight bytes and then \xC3"}) {
    EXPECT_FALSE(utf8_valid(text)) << text;
  }
}

// The Unicode Standard, table 3-8 and its neighbours: one U+FFFD for each maximal subpart.
TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(mend_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64").text,
            "a" + kFffd + kFffd + kFffd + "b" + kFffd + "c" + kFffd + kFffd + "d");
  EXPECT_EQ(mend_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41").text,
            kFffd + kFffd + kFffd + kFffd + kFffd + kFffd + kFffd + kFffd + "A");
  EXPECT_EQ(mend_utf8("\xED\xA0\x80").text, kFffd + kFffd + kFffd);
  EXPECT_EQ(mend_utf8("\xF0\x9F\x98").text, kFffd);
}

TEST(Utf8, TellsWhereMendedTextCameFrom) {
  const MendedText mended = mend_utf8("é\xE2\x96|\xFF");
  EXPECT_EQ(mended.text, "é" + kFffd + "|" + kFffd);
  EXPECT_EQ(mended.origin, (std::vector<size_t>{0, 1, 2, 2, 2, 4, 5, 5, 5, 6}));
}

TEST(Utf8, StepsOverACutCharacterAsLongAsItMayStillBecomeOne) {
  EXPECT_EQ(utf8_step("\xF0\x9F\x98", 0).kind, Utf8Step::Kind::cut);
  EXPECT_EQ(utf8_step("\xF0\x9F\x98", 0).length, 3);
  EXPECT_EQ(utf8_step("\xF0\x9Fx", 0).kind, Utf8Step::Kind::ill_formed);
  EXPECT_EQ(utf8_step("\xF0\x9Fx", 0).length, 2);
  EXPECT_EQ(utf8_step("😀", 0).character, U'😀');
}

}  // namespace
}  // namespace retro::text
