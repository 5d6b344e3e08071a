// Filters of sequences and mappings.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "text/jinja_filters.h"
#include "text/jinja_functions.h"
#include "text/jinja_operators.h"
#include "text/jinja_sequences.h"
#include "text/jinja_strings.h"

namespace retro::text::jinja {

namespace {

/// What select, reject and map go over: as in jinja2, any false value (None too) is nothing.
const List* items_if_true(const Value& subject, Arena& arena) {
  return truthy(subject) ? iterate(subject, arena) : arena.list();
}

Value filter_length(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("length", arguments, {});
  if (subject.is(Kind::string)) interpreter.arena().step(subject.string->bytes.size() / 64);
  return Value::of(length(subject));
}

Value filter_list(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("list", arguments, {});
  Arena& arena = interpreter.arena();
  List* copy = arena.list();
  const List* items = iterate(subject, arena);
  arena.step(items->items.size());
  arena.charge(items->items.size() * sizeof(Value));
  copy->items = items->items;
  Value result = Value::of(copy);
  result.origin = subject.origin;
  return result;
}

Value filter_first(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("first", arguments, {});
  Arena& arena = interpreter.arena();
  if (subject.is(Kind::string)) return element(subject, 0, arena);
  const List* items = iterate(subject, arena);
  return items->items.empty() ? arena.undefined("the first item of nothing") : items->items.front();
}

Value filter_last(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("last", arguments, {});
  Arena& arena = interpreter.arena();
  if (subject.is(Kind::string)) return element(subject, -1, arena);
  if (subject.is(Kind::list) && subject.list->type == List::Type::generator) {
    fail(ErrorKind::model, "'last' does not take a generator; put it through the filter 'list'");
  }
  const List* items = iterate(subject, arena);
  return items->items.empty() ? arena.undefined("the last item of nothing") : items->items.back();
}

Value filter_join(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("join", arguments, {"d", "attribute"});
  Arena& arena = interpreter.arena();
  const List* items = iterate(subject, arena);
  if (bound.set(1)) {
    List* attributes = arena.list();
    for (const Value& item : items->items)
      push(*attributes, at_path(item, bound.at(1), nullptr, interpreter), arena);
    items = attributes;
  }
  return Value::of(join(*items, bound.has(0) ? *to_str(bound.at(0), arena) : *arena.refer(""), arena));
}

Value filter_reverse(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("reverse", arguments, {});
  Arena& arena = interpreter.arena();
  if (subject.is(Kind::string)) return Value::of(reverse(*subject.string, arena));
  List* result = arena.list(List::Type::generator);
  const List* items = iterate(subject, arena);
  arena.step(items->items.size());
  arena.charge(items->items.size() * sizeof(Value));
  result->items.assign(items->items.rbegin(), items->items.rend());
  return Value::of(result);
}

template <bool kSelect>
Value filter_select(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Arena& arena = interpreter.arena();
  List* result = arena.list(List::Type::generator);
  Arguments rest = arguments;
  if (!rest.positional.empty()) rest.positional.erase(rest.positional.begin());
  for (const Value& item : items_if_true(subject, arena)->items) {
    const bool kept =
        arguments.positional.empty()
            ? truthy(item)
            : interpreter.test(to_string(arguments.positional[0], "'select'").bytes, item, rest);
    arena.step();
    if (kept == kSelect) push(*result, item, arena);
  }
  return Value::of(result);
}

template <bool kSelect>
Value filter_select_attribute(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Arena& arena = interpreter.arena();
  if (arguments.positional.empty()) fail(ErrorKind::model, "'selectattr' needs an attribute's name");
  List* result = arena.list(List::Type::generator);
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + (arguments.positional.size() > 1 ? 2 : 1));
  for (const Value& item : items_if_true(subject, arena)->items) {
    const Value value = at_path(item, arguments.positional[0], nullptr, interpreter);
    const bool kept =
        arguments.positional.size() < 2
            ? truthy(value)
            : interpreter.test(to_string(arguments.positional[1], "'selectattr'").bytes, value, rest);
    arena.step();
    if (kept == kSelect) push(*result, item, arena);
  }
  return Value::of(result);
}

Value filter_map(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Arena& arena = interpreter.arena();
  List* result = arena.list(List::Type::generator);
  const List* items = items_if_true(subject, arena);
  if (arguments.positional.empty()) {
    const Bound bound("map", arguments, {"attribute", "default"});
    for (const Value& item : items->items) {
      push(*result, at_path(item, bound.at(0), bound.get(1), interpreter), arena);
    }
    return Value::of(result);
  }
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  const std::string_view name = to_string(arguments.positional[0], "'map'").bytes;
  for (const Value& item : items->items) push(*result, interpreter.filter(name, item, rest), arena);
  return Value::of(result);
}

Value filter_items(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  Bound("items", arguments, {});
  Arena& arena = interpreter.arena();
  List* result = arena.list(List::Type::generator);
  if (subject.is(Kind::undefined)) return Value::of(result);
  if (!subject.is(Kind::dict)) type_error("'items'", subject);
  for (const auto& [key, value] : subject.dict->items) push(*result, pair(key, value, arena), arena);
  return Value::of(result);
}

Value filter_sum(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("sum", arguments, {"attribute", "start"});
  Arena& arena = interpreter.arena();
  Value total = bound.has(1) ? bound.at(1) : Value::of(int64_t{0});
  for (const Value& item : iterate(subject, arena)->items) {
    arena.step();
    total =
        binary(Op::add, total, bound.set(0) ? at_path(item, bound.at(0), nullptr, interpreter) : item, arena);
  }
  return total;
}

Value filter_batch(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("batch", arguments, {"linecount", "fill_with"});
  Arena& arena = interpreter.arena();
  const int64_t size = to_integer(bound.at(0), "batch");
  if (size < 1) fail(ErrorKind::model, "'batch' needs a size of at least 1");
  List* result = arena.list(List::Type::generator);
  List* row = nullptr;
  for (const Value& item : iterate(subject, arena)->items) {
    if (row == nullptr || static_cast<int64_t>(row->items.size()) == size) {
      row = arena.list();
      push(*result, Value::of(row), arena);
    }
    push(*row, item, arena);
  }
  while (row != nullptr && bound.set(1) && static_cast<int64_t>(row->items.size()) < size) {
    push(*row, bound.at(1), arena);
  }
  return Value::of(result);
}

Value filter_slice(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("slice", arguments, {"slices", "fill_with"});
  Arena& arena = interpreter.arena();
  const int64_t count = to_integer(bound.at(0), "slice");
  if (count < 1) fail(ErrorKind::model, "'slice' needs at least 1 slice");
  const List* items = iterate(subject, arena);
  const auto total = static_cast<int64_t>(items->items.size());
  const int64_t longer = total % count;
  List* result = arena.list(List::Type::generator);
  size_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    List* column = arena.list();
    for (int64_t j = 0; j < total / count + (i < longer ? 1 : 0); ++j)
      push(*column, items->items[at++], arena);
    if (bound.set(1) && i >= longer) push(*column, bound.at(1), arena);
    push(*result, Value::of(column), arena);
  }
  return Value::of(result);
}

Value filter_attribute(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("attr", arguments, {"name"});
  const std::string_view name = to_string(bound.at(0), "attr").bytes;
  // Unlike a dot, this filter never looks at a dict's keys.
  if (subject.is(Kind::dict) && find_method(subject, name) == nullptr)
    return interpreter.arena().undefined(name);
  return interpreter.attribute(subject, name);
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr std::array kFilters = {
    NamedFilter{"length", filter_length},
    NamedFilter{"count", filter_length},
    NamedFilter{"list", filter_list},
    NamedFilter{"first", filter_first},
    NamedFilter{"last", filter_last},
    NamedFilter{"join", filter_join},
    NamedFilter{"reverse", filter_reverse},
    NamedFilter{"select", filter_select<true>},
    NamedFilter{"reject", filter_select<false>},
    NamedFilter{"selectattr", filter_select_attribute<true>},
    NamedFilter{"rejectattr", filter_select_attribute<false>},
    NamedFilter{"map", filter_map},
    NamedFilter{"items", filter_items},
    NamedFilter{"sum", filter_sum},
    NamedFilter{"batch", filter_batch},
    NamedFilter{"slice", filter_slice},
    NamedFilter{"attr", filter_attribute},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  for (const NamedFilter& each : kFilters) {
    if (each.name == name) return each.filter;
  }
  return nullptr;
}

}  // namespace retro::text::jinja
