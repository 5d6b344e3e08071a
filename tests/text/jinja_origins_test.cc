// Every byte of a rendering knows the message it was copied from.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/jinja.h"

namespace retro::text {
namespace {

/// Renders with `m`, a mapping whose strings come from message 0, and `n`, one from message 1; writes the
/// template's bytes as they are, message 0's in (…), message 1's in [...].
std::string marked(const std::string& source) {
  const auto m = nlohmann::ordered_json::parse(
      R"({"text": "Hello, World", "pad": "  x y  ", "list": ["a", "b"], "n": 12, "u": "é<ü", "lines": "p\nq", "d": {"k": "v"}})");
  const Rendered rendered = JinjaTemplate(source).render(
      [&](jinja::Arena& arena, const JinjaTemplate::Bind& bind) {
        bind("m", jinja::from_json(m, Origin(0, Field::content), arena));
        bind("n", jinja::from_json(m, Origin(1, Field::content), arena));
      },
      0);
  std::string out;
  size_t at = 0;
  for (const Run& run : rendered.runs) {
    EXPECT_EQ(run.begin, at);
    EXPECT_LT(run.begin, run.end);
    at = run.end;
    const std::string text = rendered.text.substr(run.begin, run.end - run.begin);
    out += run.origin.message == 0 ? "(" + text + ")" : run.origin.message == 1 ? "[" + text + "]" : text;
  }
  EXPECT_EQ(at, rendered.text.size());
  return out;
}

TEST(JinjaOrigins, SurviveEveryStringOperation) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a{{ m.text }}b", "a(Hello, World)b"},
      {"{{ 'x' + m.text + 'y' + n.text }}", "x(Hello, World)y[Hello, World]"},
      {"{{ m.text ~ n.n ~ 1 }}", "(Hello, World)[12]1"},
      {"{{ m.text[1:4] }}{{ m.text[0] }}{{ m.text[-1] }}", "(ellHd)"},
      {"{{ (m.text ~ '|' ~ n.text)[10:15] }}", "(ld)|[He]"},
      {"{{ (m.text ~ n.text)[::-1] }}", "[dlroW ,olleH](dlroW ,olleH)"},
      {"{{ m.pad | trim }}.{{ m.pad.strip() }}.{{ m.pad.lstrip() }}", "(x y).(x y).(x y  )"},
      {"{{ ('-' ~ m.pad ~ '-').strip('- ') }}", "(x y)"},
      {"{{ m.text | upper }}{{ n.text.lower() }}{{ m.u | title }}", "(HELLO, WORLD)[hello, world](É<Ü)"},
      {"{{ m.text.replace('o', '0') }}", "(Hell)0(, W)0(rld)"},
      {"{{ 'a-b' | replace('-', m.n) }}", "a(12)b"},
      {"{{ m.text.split(', ')[1] }}{{ m.text.split(', ') | join(n.n) }}", "(WorldHello)[12](World)"},
      {"{{ m.list | join(', ') }}", "(a), (b)"},
      {"{{ ' '.join(m.list) }}", "(a) (b)"},
      {"{{ m.d | tojson }}|{{ {'a': m.text} | tojson }}", "({\"k\": \"v\"})|{\"a\": (\"Hello, World\")}"},
      {"{{ m.d }}{{ [m.text, 1] }}", "({'k': 'v'})[('Hello, World'), 1]"},
      {"{{ m.u | e }}", "(é&lt;ü)"},
      {"{{ m.lines | indent(2) }}", "(p)\n  (q)"},
      {"{{ m.lines.splitlines() | last }}", "(q)"},
      {"{{ '%s: %d' % (m.text, n.n) }}", "(Hello, World): [12]"},
      {"{{ '{}/{:>4}'.format(m.text, n.n) }}", "(Hello, World)/  [12]"},
      {"{{ m.n }}{{ m.n | string }}{{ m.n + 1 }}", "(1212)13"},
      {"{% for c in m.u %}{{ c }}-{% endfor %}", "(é)-(<)-(ü)-"},
      {"{% for k, v in m.d.items() %}{{ k }}={{ v }}{% endfor %}", "(k)=(v)"},
      {"{% set x %}<{{ m.text }}>{% endset %}{{ x }}{{ x | length }}", "<(Hello, World)>14"},
      {"{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f(m.n) | upper }}", "[(12)]"},
      {"{% filter replace('1', '_') %}{{ m.n }}{{ n.n }}{% endfilter %}", "_(2)_[2]"},
      {"{% set ns = namespace(t='') %}{% for x in m.list %}{% set ns.t = ns.t + x + ';' %}{% endfor %}{{ "
       "ns.t }}",
       "(a);(b);"},
      {"{{ m.text if m.text == n.text else 'no' }}", "(Hello, World)"},
      {"{{ m.missing | default(n.n) }}", "[12]"},
      {"{{ m.list | map('upper') | join }}{{ m.list | first }}{{ m.list | sort(reverse=true) | join }}",
       "(ABaba)"},
      {"{{ (m.n ~ n.n) | int }}", "(1212)"},
      {"{{ m.text | truncate(8, true, '…', 0) }}", "(Hello, )…"},
      {"{{ m.text.partition(', ')[1] }}{{ m.text.removeprefix('Hell') }}", "(, o, World)"},
      {"{{ 'pre' ~ m.text.center(14, '*') }}", "pre*(Hello, World)*"},
      {"{{ m.text * 2 }}", "(Hello, WorldHello, World)"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(marked(source), expected) << source;
}

}  // namespace
}  // namespace retro::text
