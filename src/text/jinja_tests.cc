// The tests of `value is test`.
#include <array>

#include "base/error.h"
#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

template <Kind kKind>
bool is_kind(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("a test", arguments, {});
  return subject.is(kKind);
}

bool is_defined(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("defined", arguments, {});
  return !subject.is(Kind::undefined);
}

template <bool kTruth>
bool is_truth(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("true", arguments, {});
  return subject.is(Kind::boolean) && subject.boolean == kTruth;
}

bool is_number(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("number", arguments, {});
  return subject.is_number();
}

bool is_iterable(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("iterable", arguments, {});
  return subject.is(Kind::undefined) || subject.is(Kind::string) || subject.is(Kind::list) ||
         subject.is(Kind::dict);
}

bool is_sequence(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("sequence", arguments, {});
  return subject.is(Kind::undefined) || subject.is(Kind::string) || subject.is(Kind::dict) ||
         (subject.is(Kind::list) && subject.list->type <= List::Type::range);
}

bool is_callable(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("callable", arguments, {});
  return subject.is(Kind::object) && subject.object->callable();
}

bool is_escaped(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("escaped", arguments, {});
  return subject.is(Kind::string) && subject.string->markup;
}

template <int kRemainder>
bool is_parity(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound(kRemainder == 0 ? "even" : "odd", arguments, {});
  const Value remainder = binary(Op::modulo, subject, Value::of(int64_t{2}), interpreter.arena());
  return equal(remainder, Value::of(int64_t{kRemainder}));
}

bool is_divisible(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("divisibleby", arguments, {"num"});
  return !truthy(binary(Op::modulo, subject, bound.at(0), interpreter.arena()));
}

template <bool kUpper>
bool is_case(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("upper", arguments, {});
  const std::string_view text = to_str(subject, interpreter.arena())->bytes;
  interpreter.arena().step(text.size() / 16);
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (kUpper ? is_cased_lower(point.value) : is_cased_upper(point.value)) return false;
    any |= kUpper ? is_cased_upper(point.value) : is_cased_lower(point.value);
    at += point.size;
  }
  return any;
}

template <Op kOp>
bool compares(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("a comparison", arguments, {"other"});
  return compare_with(kOp, subject, bound.at(0), interpreter.arena());
}

bool is_same(const Value& subject, const Arguments& arguments, Interpreter&) {
  const Bound bound("sameas", arguments, {"other"});
  const Value& other = bound.at(0);
  if (subject.kind != other.kind) return false;
  switch (subject.kind) {
    case Kind::list:
      return subject.list == other.list;
    case Kind::dict:
    case Kind::space:
      return subject.dict == other.dict;
    case Kind::undefined:
      return false;
    default:
      return equal(subject, other);
  }
}

bool is_filter(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("filter", arguments, {});
  return find_filter(to_string(subject, "'filter'").bytes) != nullptr;
}

bool is_test(const Value& subject, const Arguments& arguments, Interpreter&) {
  Bound("test", arguments, {});
  return find_test(to_string(subject, "'test'").bytes) != nullptr;
}

struct NamedTest {
  std::string_view name;
  Test test;
};

constexpr std::array kTests = {
    NamedTest{"defined", is_defined},
    NamedTest{"undefined", is_kind<Kind::undefined>},
    NamedTest{"none", is_kind<Kind::none>},
    NamedTest{"boolean", is_kind<Kind::boolean>},
    NamedTest{"true", is_truth<true>},
    NamedTest{"false", is_truth<false>},
    NamedTest{"integer", is_kind<Kind::integer>},
    NamedTest{"float", is_kind<Kind::real>},
    NamedTest{"number", is_number},
    NamedTest{"string", is_kind<Kind::string>},
    NamedTest{"mapping", is_kind<Kind::dict>},
    NamedTest{"sequence", is_sequence},
    NamedTest{"iterable", is_iterable},
    NamedTest{"callable", is_callable},
    NamedTest{"escaped", is_escaped},
    NamedTest{"even", is_parity<0>},
    NamedTest{"odd", is_parity<1>},
    NamedTest{"divisibleby", is_divisible},
    NamedTest{"upper", is_case<true>},
    NamedTest{"lower", is_case<false>},
    NamedTest{"sameas", is_same},
    NamedTest{"filter", is_filter},
    NamedTest{"test", is_test},
    NamedTest{"eq", compares<Op::equal>},
    NamedTest{"equalto", compares<Op::equal>},
    NamedTest{"==", compares<Op::equal>},
    NamedTest{"ne", compares<Op::not_equal>},
    NamedTest{"!=", compares<Op::not_equal>},
    NamedTest{"lt", compares<Op::less>},
    NamedTest{"lessthan", compares<Op::less>},
    NamedTest{"<", compares<Op::less>},
    NamedTest{"le", compares<Op::less_equal>},
    NamedTest{"<=", compares<Op::less_equal>},
    NamedTest{"gt", compares<Op::greater>},
    NamedTest{"greaterthan", compares<Op::greater>},
    NamedTest{">", compares<Op::greater>},
    NamedTest{"ge", compares<Op::greater_equal>},
    NamedTest{">=", compares<Op::greater_equal>},
    NamedTest{"in", compares<Op::in>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const NamedTest& each : kTests) {
    if (each.name == name) return each.test;
  }
  return nullptr;
}

}  // namespace retro::text::jinja
