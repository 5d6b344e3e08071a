// Hostile templates end in a bounded error that names the line.
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja.h"

namespace retro::text {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMaxSeconds = 20;
#else
constexpr double kMaxSeconds = 1;
#endif

/// The error of parsing and rendering `source`, which takes less than a second of processor time.
std::string error_of(const std::string& source) {
  const std::clock_t start = std::clock();
  std::string error;
  try {
    JinjaTemplate(source).render(nlohmann::ordered_json{{"s", "text"}, {"xs", {1, 2}}}, 0);
  } catch (const Error& caught) {
    EXPECT_EQ(caught.kind(), ErrorKind::model);
    error = caught.what();
  }
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMaxSeconds) << source.substr(0, 80);
  return error;
}

std::string repeat(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(JinjaLimits, SelfCallingMacroMeetsTheDepthLimit) {
  EXPECT_EQ(
      error_of("a\n{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}"),
      "chat template, line 2: the template nests calls deeper than 1200 levels; does a macro call itself "
      "without end?");
}

TEST(JinjaLimits, NestedSourceMeetsTheParsersLimit) {
  for (const auto& [open, close] : std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                                                    {"[", "]"},
                                                                                    {"{1:", "}"},
                                                                                    {"not ", ""},
                                                                                    {"-", ""},
                                                                                    {"s[", "]"},
                                                                                    {"m(", ")"},
                                                                                    {"1 if 1 else ", ""}}) {
    const std::string source = "{{ " + repeat(open, 5000) + "1" + repeat(close, 5000) + " }}";
    EXPECT_NE(error_of(source).find("line 1: "), std::string::npos) << open;
    EXPECT_NE(error_of(source).find("deeper than 150 levels"), std::string::npos) << open;
  }
  EXPECT_NE(error_of("{{ 1" + repeat(" + 1", 5000) + " }}"), "");
  EXPECT_NE(error_of("{{ s" + repeat(".x", 5000) + " }}"), "");
  EXPECT_NE(error_of("{{ s" + repeat("|trim", 5000) + " }}"), "");
  EXPECT_NE(error_of(repeat("{% if 1 %}", 5000) + repeat("{% endif %}", 5000)), "");
  EXPECT_NE(error_of("{% for " + repeat("(", 5000) + "a" + repeat(")", 5000) + " in xs %}{% endfor %}"), "");
}

TEST(JinjaLimits, LongButFlatSourceIsFine) {
  EXPECT_EQ(error_of("{{ 1" + repeat(" ~ 1", 5000) + " }}"), "");
  EXPECT_EQ(error_of("{{ [" + repeat("1, ", 50000) + "] | length }}"), "");
  EXPECT_EQ(error_of("{% if 0 %}" + repeat("{% elif 0 %}", 5000) + "{% endif %}"), "");
  EXPECT_EQ(error_of(repeat("{{ s }}\n", 20000)), "");
}

TEST(JinjaLimits, LoopsMeetTheStepLimit) {
  EXPECT_NE(error_of("{% for a in range(10**7) %}{% for b in range(10**7) %}{% endfor %}{% endfor %}"), "");
  EXPECT_NE(error_of("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
                .find("needs more than 4000000 steps"),
            std::string::npos);
  EXPECT_NE(
      error_of("{% for a in range(99999) %}{% for b in range(99999) %}{{ a ~ b }}{% endfor %}{% endfor %}"),
      "");
  EXPECT_NE(error_of("{% set ns = namespace(x=[0]) %}{% for a in range(99999) %}{% set ns.x = ns.x + ns.x "
                     "%}{% endfor %}"),
            "");
  EXPECT_NE(error_of("{% for a in range(99999) %}{{ range(99999) | sort | length }}{% endfor %}"), "");
  EXPECT_NE(error_of("{{ {" +
                     [] {
                       std::string items;
                       for (int i = 0; i < 50000; ++i) items += std::to_string(i) + ": 1, ";
                       return items;
                     }() +
                     "} | length }}"),
            "");
}

TEST(JinjaLimits, GrowingTextMeetsTheMemoryLimit) {
  EXPECT_NE(
      error_of(
          "{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}")
          .find("needs more than 192 MiB of memory"),
      std::string::npos);
  EXPECT_NE(error_of("{{ 'a' * 10**15 }}"), "");
  EXPECT_NE(error_of("{{ [1] * 10**15 }}"), "");
  EXPECT_NE(error_of("{{ 'a'.ljust(10**15) }}"), "");
  EXPECT_NE(error_of("{{ '%999999999d' % 1 }}"), "");
  EXPECT_NE(error_of("{{ 'a' | center(10**15) }}"), "");
  EXPECT_NE(error_of("{{ '{:999999999}'.format(1) }}"), "");
  EXPECT_NE(error_of("{{ 'a' | indent(10**12, true) }}"), "");
  EXPECT_NE(error_of("{{ [1] | batch(10**12, 0) | list }}"), "");
  EXPECT_NE(error_of("{{ [1] | slice(10**12) | list }}"), "");
  EXPECT_NE(error_of("{{ ('a' * 10000).replace('', 'b' * 100000) }}"), "");
}

TEST(JinjaLimits, ValuesThatHoldThemselvesDoNotRunAway) {
  const std::string cycle = "{% set ns = namespace() %}{% set ns.me = [ns] %}";
  EXPECT_NE(error_of(cycle + "{{ ns }}").find("nested deeper than 200 levels"), std::string::npos);
  EXPECT_NE(error_of(cycle + "{{ ns.me == [ns.me] }}"), "x");
  EXPECT_NE(error_of(cycle + "{{ ns.me | tojson }}"), "");
  const std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_EQ(error_of(deep), "");
  EXPECT_NE(error_of(deep + "{{ ns.x }}"), "");
  EXPECT_NE(error_of(deep + "{{ ns.x | tojson }}"), "");
  EXPECT_NE(error_of(deep + "{{ ns.x == [[ns.x]] }}"), "");
  EXPECT_NE(error_of(deep + "{{ ns.x < [[ns.x]] }}"), "");
}

TEST(JinjaLimits, NumbersThatOverflowAreErrors) {
  for (const std::string expression :
       {"9223372036854775807 + 1", "9223372036854775807 * 2", "2 ** 64", "-9223372036854775807 - 2",
        "99999999999999999999", "(-9223372036854775807 - 1) // -1", "-(-9223372036854775807 - 1)",
        "xs[9223372036854775807:-9223372036854775807:9223372036854775807] ~ 1 / 0",
        "s[9223372036854775807] + 1", "range(9223372036854775807)",
        "range(-9223372036854775807, 9223372036854775807)", "'9999999999999999999' | int"}) {
    EXPECT_NE(error_of("{{ " + expression + " }}"), "") << expression;
  }
}

TEST(JinjaLimits, DeeplyNestedDataIsADataError) {
  nlohmann::ordered_json deep = nlohmann::ordered_json::parse(repeat("[", 3000) + repeat("]", 3000));
  try {
    JinjaTemplate("{{ x }}").render(nlohmann::ordered_json{{"x", deep}}, 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
  }
}

TEST(JinjaLimits, FaultsNameTheLine) {
  EXPECT_EQ(error_of("a\nb\n{{ s.nothing() }}"),
            "chat template, line 3: a value of type 'str' has no method 'nothing'");
  EXPECT_EQ(error_of("\n\n{% if %}"), "chat template, line 3: expected an expression");
  EXPECT_EQ(error_of("x\n{{ 'open"), "chat template, line 2: a string is never closed");
  EXPECT_EQ(error_of("\n{{ missing.role }}"), "chat template, line 2: 'missing' is undefined");
}

}  // namespace
}  // namespace retro::text
