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

const nlohmann::ordered_json kContext = {{"s", "text"}, {"xs", {1, 2}}};

std::string rendered(const std::string& source) {
  return JinjaTemplate(source).render(kContext, 0).text;
}

/// The error of parsing and rendering `source`, which takes less than a second of processor time.
std::string error_of(const std::string& source) {
  const std::clock_t start = std::clock();
  std::string error;
  try {
    rendered(source);
  } catch (const Error& caught) {
    EXPECT_EQ(caught.kind(), ErrorKind::model);
    error = caught.what();
  }
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMaxSeconds) << source.substr(0, 80);
  return error;
}

constexpr const char* kSteps = "needs more than 4000000 steps";
constexpr const char* kMemory = "needs more than 192 MiB of memory";
constexpr const char* kWide = "a format is wider than 10000";
constexpr const char* kNested = "deeper than 150 levels";
constexpr const char* kDeepValue = "values are nested deeper than 200 levels";
constexpr const char* kInteger = "an integer is beyond 64 bits";

void expect_error(const std::string& source, const std::string& words) {
  const std::string error = error_of(source);
  EXPECT_NE(error.find("line 1: "), std::string::npos) << source.substr(0, 80) << "\nerror: " << error;
  EXPECT_NE(error.find(words), std::string::npos) << source.substr(0, 80) << "\nerror: " << error;
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
    expect_error("{{ " + repeat(open, 5000) + "1" + repeat(close, 5000) + " }}", kNested);
  }
  expect_error("{{ 1" + repeat(" + 1", 5000) + " }}", kNested);
  expect_error("{{ s" + repeat(".x", 5000) + " }}", kNested);
  expect_error("{{ s" + repeat("|trim", 5000) + " }}", kNested);
  expect_error(repeat("{% if 1 %}", 5000) + repeat("{% endif %}", 5000), kNested);
  expect_error("{% for " + repeat("(", 5000) + "a" + repeat(")", 5000) + " in xs %}{% endfor %}", kNested);
}

TEST(JinjaLimits, LongButFlatSourceIsFine) {
  EXPECT_EQ(error_of("{{ 1" + repeat(" ~ 1", 5000) + " }}"), "");
  EXPECT_EQ(error_of("{{ [" + repeat("1, ", 50000) + "] | length }}"), "");
  EXPECT_EQ(error_of("{% if 0 %}" + repeat("{% elif 0 %}", 5000) + "{% endif %}"), "");
  EXPECT_EQ(error_of(repeat("{{ s }}\n", 20000)), "");
}

TEST(JinjaLimits, LoopsMeetTheStepLimit) {
  const std::string two_loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  expect_error(two_loops + ends, kSteps);
  expect_error(two_loops + "{{ a ~ b }}" + ends, kSteps);
  expect_error("{% for a in range(10**7) %}{% endfor %}", "range is longer than 100000");
  expect_error(
      "{% set ns = namespace(x=[0]) %}{% for a in range(99999) %}{% set ns.x = ns.x + ns.x "
      "%}{% endfor %}",
      kSteps);
  expect_error("{% for a in range(99999) %}{{ range(99999) | sort | length }}{% endfor %}", kSteps);
  std::string items;
  for (int i = 0; i < 50000; ++i) items += std::to_string(i) + ": 1, ";
  expect_error("{{ {" + items + "} | length }}", kSteps);
}

TEST(JinjaLimits, GrowingTextMeetsTheMemoryLimit) {
  expect_error(
      "{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      kMemory);
  expect_error("{{ ('a' * 10000).replace('', 'b' * 100000) }}", kMemory);
}

TEST(JinjaLimits, SizesThatATemplateNamesMeetALimitBeforeTheyAreMade) {
  for (const std::string expression :
       {"'a' * 10**15", "[1] * 10**15", "'a'.ljust(10**15)", "'a' | center(10**15)",
        "'a' | indent(10**12, true)", "[1] | batch(10**12, 0) | list", "[1] | slice(10**12) | list"}) {
    expect_error("{{ " + expression + " }}", kSteps);
  }
  expect_error("{{ '%999999999d' % 1 }}", kWide);
  expect_error("{{ '{:999999999}'.format(1) }}", kWide);
}

TEST(JinjaLimits, ValuesThatHoldThemselvesDoNotRunAway) {
  const std::string cycle = "{% set ns = namespace() %}{% set ns.me = [ns] %}";
  expect_error(cycle + "{{ ns }}", kDeepValue);
  EXPECT_EQ(rendered(cycle + "{{ ns.me == [ns.me] }} {{ ns.me == [ns] }}"), "False True");
  expect_error(cycle + "{{ ns.me | tojson }}", "a value of type 'Namespace' has no JSON form");
  const std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_EQ(error_of(deep), "");
  for (const std::string expression : {"ns.x", "ns.x | tojson", "ns.x == [[ns.x]]", "ns.x < [[ns.x]]"}) {
    expect_error(deep + "{{ " + expression + " }}", kDeepValue);
  }
}

TEST(JinjaLimits, NumbersThatOverflowAreErrors) {
  for (const std::string expression :
       {"9223372036854775807 + 1", "9223372036854775807 * 2", "2 ** 64", "-9223372036854775807 - 2",
        "(-9223372036854775807 - 1) // -1", "(-9223372036854775807 - 1) % -1", "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) | abs"}) {
    expect_error("{{ " + expression + " }}", kInteger);
  }
  expect_error("{{ 99999999999999999999 }}", "'99999999999999999999' is no number we can hold");
  expect_error("{{ '9999999999999999999' | int }}", "the integer 9999999999999999999 is beyond 64 bits");
  expect_error("{{ range(9223372036854775807) }}", "range goes too far");
  expect_error("{{ range(-9223372036854775807, 9223372036854775807) }}", "range goes too far");
}

TEST(JinjaLimits, IndicesBeyondTheEndsAreAsInPython) {
  EXPECT_EQ(rendered("{{ xs[9223372036854775807:-9223372036854775807:9223372036854775807] }}"), "[]");
  EXPECT_EQ(rendered("{{ xs[::9223372036854775807] }} {{ xs[::-9223372036854775807] }}"), "[1] [2]");
  EXPECT_EQ(rendered("{{ xs[-9223372036854775807 - 1:] }}"), "[1, 2]");
  for (const std::string index : {"9223372036854775807", "-9223372036854775807 - 1"}) {
    EXPECT_EQ(rendered("{{ s[" + index + "] is undefined and xs[" + index + "] is undefined }}"), "True");
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
