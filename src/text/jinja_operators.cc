#include "text/jinja_operators.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "text/jinja_format.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

void require_defined(const Value& value) {
  if (!value.is(Kind::undefined)) return;
  fail(ErrorKind::model, "'{}' is undefined", value.string != nullptr ? value.string->bytes : "value");
}

void type_error(std::string_view operation, const Value& value) {
  require_defined(value);
  fail(ErrorKind::model, "{} does not take a value of type '{}'", operation, type_name(value));
}

int64_t to_integer(const Value& value, std::string_view what) {
  if (value.is(Kind::integer)) return value.integer;
  if (value.is(Kind::boolean)) return value.boolean ? 1 : 0;
  type_error(what, value);
}

double to_real(const Value& value, std::string_view what) {
  if (value.is(Kind::real)) return value.real;
  return static_cast<double>(to_integer(value, what));
}

const Str& to_string(const Value& value, std::string_view what) {
  if (!value.is(Kind::string)) type_error(what, value);
  return *value.string;
}

namespace {

constexpr std::string_view kOpNames[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void operand_error(Op op, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  fail(ErrorKind::model, "'{}' does not take '{}' and '{}'", kOpNames[static_cast<size_t>(op)],
       type_name(left), type_name(right));
}

[[noreturn]] void overflow() {
  fail(ErrorKind::model, "an integer is beyond 64 bits");
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

Value integer_binary(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &result)) overflow();
      return Value::of(result);
    case Op::subtract:
      if (__builtin_sub_overflow(a, b, &result)) overflow();
      return Value::of(result);
    case Op::multiply:
      if (__builtin_mul_overflow(a, b, &result)) overflow();
      return Value::of(result);
    case Op::power:
      if (b < 0) return Value::of(std::pow(static_cast<double>(a), static_cast<double>(b)));
      return Value::of(integer_power(a, b));
    default:
      break;
  }
  if (b == 0) fail(ErrorKind::model, "division by zero");
  if (op == Op::divide) return Value::of(static_cast<double>(a) / static_cast<double>(b));
  if (a == INT64_MIN && b == -1) overflow();
  const int64_t remainder = a % b;
  const bool shift = remainder != 0 && (remainder < 0) != (b < 0);
  if (op == Op::modulo) return Value::of(shift ? remainder + b : remainder);
  return Value::of(a / b - (shift ? 1 : 0));
}

Value real_binary(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return Value::of(a + b);
    case Op::subtract:
      return Value::of(a - b);
    case Op::multiply:
      return Value::of(a * b);
    case Op::power:
      return Value::of(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) fail(ErrorKind::model, "division by zero");
  if (op == Op::divide) return Value::of(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == Op::modulo) return Value::of(remainder);
  return Value::of(std::floor((a - remainder) / b + 0.5));
}

Value repeat(const Value& sequence, int64_t count, Arena& arena) {
  count = std::max<int64_t>(count, 0);
  if (sequence.is(Kind::string)) {
    TextBuilder out(arena);
    if (!sequence.string->bytes.empty()) {
      for (int64_t i = 0; i < count; ++i) {
        arena.step();
        out.append(*sequence.string);
      }
    }
    return Value::of(out.finish(sequence.string->markup));
  }
  List* result = arena.list(sequence.list->type);
  if (sequence.list->items.empty()) return Value::of(result);
  for (int64_t i = 0; i < count; ++i) {
    arena.step(sequence.list->items.size());
    arena.charge(sequence.list->items.size() * sizeof(Value));
    result->items.insert(result->items.end(), sequence.list->items.begin(), sequence.list->items.end());
  }
  return Value::of(result);
}

bool repeatable(const Value& value) {
  return value.is(Kind::string) || (value.is(Kind::list) && (value.list->type == List::Type::list ||
                                                             value.list->type == List::Type::tuple));
}

}  // namespace

Value binary(Op op, const Value& left, const Value& right, Arena& arena) {
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::real) || right.is(Kind::real))
      return real_binary(op, to_real(left, "+"), to_real(right, "+"));
    return integer_binary(op, to_integer(left, "+"), to_integer(right, "+"));
  }
  if (op == Op::modulo && left.is(Kind::string)) {
    return Value::of(format_percent(*left.string, right, arena));
  }
  if (op == Op::multiply) {
    if (repeatable(left) && right.is_number() && !right.is(Kind::real)) {
      return repeat(left, to_integer(right, "*"), arena);
    }
    if (repeatable(right) && left.is_number() && !left.is(Kind::real)) {
      return repeat(right, to_integer(left, "*"), arena);
    }
  }
  if (op == Op::add && left.is(Kind::string) && right.is(Kind::string)) {
    return Value::of(concatenate(*left.string, *right.string, arena));
  }
  if (op == Op::add && left.is(Kind::list) && right.is(Kind::list) && repeatable(left) &&
      left.list->type == right.list->type) {
    List* result = arena.list(left.list->type);
    arena.step(left.list->items.size() + right.list->items.size());
    arena.charge((left.list->items.size() + right.list->items.size()) * sizeof(Value));
    result->items = left.list->items;
    result->items.insert(result->items.end(), right.list->items.begin(), right.list->items.end());
    return Value::of(result);
  }
  operand_error(op, left, right);
}

const Str* concatenate(const Str& left, const Str& right, Arena& arena) {
  TextBuilder out(arena);
  const bool markup = left.markup || right.markup;
  out.append(markup && !left.markup ? *escape_html(left, arena) : left);
  out.append(markup && !right.markup ? *escape_html(right, arena) : right);
  return out.finish(markup);
}

const Str* escape_html(const Str& string, Arena& arena) {
  if (string.markup) return &string;
  TextBuilder out(arena);
  size_t done = 0;
  for (size_t at = 0; at < string.bytes.size(); ++at) {
    std::string_view entity;
    switch (string.bytes[at]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '"':
        entity = "&#34;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      default:
        continue;
    }
    out.append(string, done, at);
    out.append(entity, arena.slice(string, at, at + 1)->origin);
    done = at + 1;
  }
  out.append(string, done, string.bytes.size());
  return out.finish(true);
}

bool contains(const Value& container, const Value& item, Arena& arena) {
  if (container.is(Kind::string)) {
    const Str& part = to_string(item, "'in' of a string");
    arena.step(container.string->bytes.size() / 64);
    return container.string->bytes.find(part.bytes) != std::string_view::npos;
  }
  if (container.is(Kind::dict)) return container.dict->find(item) != nullptr;
  for (const Value& each : iterate(container, arena)->items) {
    arena.step();
    if (equal(each, item)) return true;
  }
  return false;
}

bool compare_with(Op op, const Value& left, const Value& right, Arena& arena) {
  switch (op) {
    case Op::equal:
      return equal(left, right);
    case Op::not_equal:
      return !equal(left, right);
    case Op::in:
      return contains(right, left, arena);
    case Op::not_in:
      return !contains(right, left, arena);
    default:
      break;
  }
  // No order holds where a NaN is involved.
  const bool nan =
      (left.is(Kind::real) && std::isnan(left.real)) || (right.is(Kind::real) && std::isnan(right.real));
  const int order = compare(left, right);
  if (nan) return false;
  switch (op) {
    case Op::less:
      return order < 0;
    case Op::less_equal:
      return order <= 0;
    case Op::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Value negate(const Value& value) {
  if (value.is(Kind::real)) return Value::of(-value.real);
  const int64_t integer = to_integer(value, "'-'");
  if (integer == INT64_MIN) overflow();
  return Value::of(-integer);
}

Value element(const Value& container, int64_t index, Arena& arena) {
  if (container.is(Kind::list)) {
    const auto& items = container.list->items;
    const auto size = static_cast<int64_t>(items.size());
    if (index < 0) index += size;
    return index < 0 || index >= size ? Value{} : items[static_cast<size_t>(index)];
  }
  const Str& string = *container.string;
  arena.step(string.bytes.size() / 64);
  size_t begin = 0;
  if (index < 0) {
    begin = string.bytes.size();
    for (; index < 0; ++index) {
      if (begin == 0) return {};
      begin = previous_character(string.bytes, begin);
    }
  } else {
    if (static_cast<uint64_t>(index) >= string.bytes.size()) return {};
    begin = offset_of_character(string.bytes, static_cast<size_t>(index));
    if (begin >= string.bytes.size()) return {};
  }
  return Value::of(arena.slice(string, begin, begin + code_point_at(string.bytes, begin).size));
}

namespace {

/// Python's slice.indices.
struct Indices {
  int64_t begin;
  int64_t end;
  int64_t step;
};

Indices slice_indices(const Value* begin, const Value* end, const Value* step, int64_t size) {
  const auto given = [](const Value* value) { return value != nullptr && !value->is(Kind::none); };
  Indices result{};
  result.step = given(step) ? to_integer(*step, "a slice") : 1;
  if (result.step == 0) fail(ErrorKind::model, "a slice's step is zero");
  const bool back = result.step < 0;
  const auto clamp = [&](const Value* value, int64_t fallback) {
    if (!given(value)) return fallback;
    int64_t index = to_integer(*value, "a slice");
    if (index < 0) index = index < -size ? -1 : index + size;
    return back ? std::clamp<int64_t>(index, -1, size - 1) : std::clamp<int64_t>(index, 0, size);
  };
  result.begin = clamp(begin, back ? size - 1 : 0);
  result.end = clamp(end, back ? -1 : size);
  return result;
}

}  // namespace

Value slice(const Value& container, const Value* begin, const Value* end, const Value* step, Arena& arena) {
  const bool string = container.is(Kind::string);
  if (!string && !(container.is(Kind::list) && container.list->type <= List::Type::range)) {
    type_error("a slice", container);
  }
  const Indices at = slice_indices(begin, end, step, length(container));
  if (string && at.step == 1) {
    const std::string_view bytes = container.string->bytes;
    arena.step(bytes.size() / 64);
    const size_t from = offset_of_character(bytes, static_cast<size_t>(at.begin));
    const auto count = static_cast<size_t>(std::max<int64_t>(at.end - at.begin, 0));
    const size_t size = offset_of_character(bytes.substr(from), count);
    return Value::of(arena.slice(*container.string, from, from + size));
  }
  const List* items = string ? iterate(container, arena) : container.list;
  List* result = arena.list(string ? List::Type::list : container.list->type);
  for (int64_t i = at.begin; at.step > 0 ? i < at.end : i > at.end;) {
    arena.step();
    arena.charge(sizeof(Value));
    result->items.push_back(items->items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, at.step, &i)) break;
  }
  if (!string) return Value::of(result);
  TextBuilder out(arena);
  for (const Value& character : result->items) out.append(*character.string);
  return Value::of(out.finish(container.string->markup));
}

Bound::Bound(std::string_view callee, const Arguments& arguments,
             std::initializer_list<std::string_view> names)
    : callee_(callee) {
  if (arguments.positional.size() > names.size()) {
    fail(ErrorKind::model, "'{}' takes at most {} arguments, not {}", callee, names.size(),
         arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(ErrorKind::model, "'{}' has no argument '{}'", callee, name);
    const auto index = static_cast<size_t>(found - names.begin());
    if (values_[index] != nullptr) fail(ErrorKind::model, "'{}' is given '{}' twice", callee, name);
    values_[index] = &value;
  }
}

const Value& Bound::at(size_t index) const {
  if (!has(index))
    fail(ErrorKind::model, "'{}' needs {} argument{}", callee_, index + 1, index == 0 ? "" : "s");
  return *values_[index];
}

bool Bound::flag(size_t index, bool fallback) const {
  return has(index) ? truthy(*values_[index]) : fallback;
}

int64_t Bound::integer(size_t index, int64_t fallback) const {
  return has(index) ? to_integer(*values_[index], callee_) : fallback;
}

}  // namespace retro::text::jinja
