// Where jinja2 leaves a value's kind to Python.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "text/jinja.h"

namespace retro::text {
namespace {

/// The rendering, or the error behind "error: ".
std::string outcome(const std::string& expression) {
  const nlohmann::ordered_json context = {{"xs", {3, 1}}, {"d", {{"k", 1}}}, {"none", nullptr}};
  try {
    return JinjaTemplate("{{ " + expression + " }}").render(context, 0).text;
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

void expect_error(const std::string& expression, const std::string& words) {
  const std::string text = outcome(expression);
  EXPECT_EQ(text.find("error: "), 0U) << expression << " gives " << text;
  EXPECT_NE(text.find(words), std::string::npos) << expression << " gives " << text;
}

TEST(JinjaPython, AnUndefinedValueFormatsAsNothing) {
  for (const std::string expression :
       {"'%s' % gone", "'%s' % d.gone", "'%s' | format(gone)", "'{}'.format(gone)", "'{!s}'.format(xs[9])"}) {
    EXPECT_EQ(outcome("'<' ~ (" + expression + ") ~ '>'"), "<>") << expression;
  }
  EXPECT_EQ(outcome("'plain' % gone"), "plain");
  EXPECT_EQ(outcome("'%-3s|' % gone"), "   |");
  EXPECT_EQ(outcome("'{!r}'.format(gone)"), "Undefined");
  expect_error("'%d' % gone", "'gone' is undefined");
  expect_error("'{:3}'.format(gone)", "'gone' is undefined");
  expect_error("'{.x}'.format(gone)", "'gone' is undefined");
}

TEST(JinjaPython, AFormatsWidthIsForTextAndNumbers) {
  EXPECT_EQ(outcome("'{:>5}{:3}|{:.2}'.format(true, 'a', 'abc')"), "    1a  |ab");
  for (const std::string value : {"xs", "d", "None", "d.keys()"}) {
    EXPECT_NE(outcome("'{}'.format(" + value + ")"), "") << value;
    expect_error("'{:5}'.format(" + value + ")", "a format of text or a number does not take");
  }
  expect_error("'{:,}'.format('a')", "a format with ','");
  expect_error("'{:.3}'.format(5)", "gives an integer a precision");
  EXPECT_EQ(outcome("'{:.1f} {:.3}'.format(5, 2.0)"), "5.0 2.0");
  expect_error("'x' % d.keys()", "not all values are used");
  EXPECT_EQ(outcome("'x' % xs"), "x");
}

TEST(JinjaPython, IndentTakesTextAloneAndTruncateWhatHasALength) {
  expect_error("gone | indent(2)", "'gone' is undefined");
  for (const std::string value : {"None", "3", "xs"}) expect_error(value + " | indent(2)", "does not take");
  EXPECT_EQ(outcome("[gone | truncate(3), xs | truncate(3)]"), "[Undefined, [3, 1]]");
  for (const std::string value : {"None", "3"}) expect_error(value + " | truncate(3)", "has no length");
  expect_error("xs | truncate(1, end='', leeway=0)", "does not take");
  EXPECT_EQ(outcome("gone | default('a\nb') | indent(2)"), "a\n  b");
}

TEST(JinjaPython, TheRestOfALimitedSplitKeepsItsFarSpace) {
  EXPECT_EQ(outcome("' a b c '.split(None, 1)"), "['a', 'b c ']");
  EXPECT_EQ(outcome("' a b c '.rsplit(None, 1)"), "[' a b', 'c']");
  EXPECT_EQ(outcome("' a '.split(None, 0) + '  '.split(None, 0) + ' a '.split()"), "['a ', 'a']");
}

TEST(JinjaPython, DictsAreNotMadeOfUndefinedValues) {
  expect_error("dict(gone, x=1)", "'gone' is undefined");
  EXPECT_EQ(outcome("dict(d, x=1)"), "{'k': 1, 'x': 1}");
}

TEST(JinjaPython, OddAndEvenTakeFractions) {
  EXPECT_EQ(outcome("[2.5 is odd, 2.5 is even, 3.0 is odd, -3 is odd, 4 is even]"),
            "[False, False, True, True, True]");
  expect_error("gone is odd", "'gone' is undefined");
}

TEST(JinjaPython, UpperCaseIsDecomposedWhereUnicodeSaysSo) {
  EXPECT_EQ(outcome("'\u0390\u03b0' | upper"), "\u0399\u0308\u0301\u03a5\u0308\u0301");
}

}  // namespace
}  // namespace retro::text
