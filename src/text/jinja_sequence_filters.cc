// Filters of sequences and mappings.
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "text/jinja_filters.h"
#include "text/jinja_functions.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"

namespace retro::text::jinja {

namespace {

void push(List& list, const Value& value, Arena& arena) {
  arena.charge(sizeof(Value));
  arena.step();
  list.items.push_back(value);
}

bool is_index(std::string_view part) {
  return !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The attribute at a dotted path ("function.name", "0.id"), or at an integer; `fallback` where it is
/// undefined.
Value at_path(const Value& item, const Value& path, const Value* fallback, Interpreter& interpreter) {
  Value value = item;
  if (!path.is(Kind::string)) {
    value = interpreter.item(value, path);
  } else {
    std::string_view rest = path.string->bytes;
    while (true) {
      const size_t dot = rest.find('.');
      const std::string_view part = rest.substr(0, dot);
      const Value key = is_index(part) ? Value::of(int64_t{std::stoi(std::string(part))})
                                       : interpreter.arena().string(part);
      value = interpreter.item(value, key);
      if (fallback != nullptr && value.is(Kind::undefined)) return *fallback;
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
    }
  }
  return fallback != nullptr && value.is(Kind::undefined) ? *fallback : value;
}

/// What select, reject and map go over: as in jinja2, any false value (None too) is nothing.
const List* items_if_true(const Value& subject, Arena& arena) {
  return truthy(subject) ? iterate(subject, arena) : arena.list();
}

/// What sorting and grouping compare: the attribute, without case unless asked.
Value sort_key(const Value& item, const Value* path, bool case_sensitive, Interpreter& interpreter) {
  const bool by_path = path != nullptr && !path->is(Kind::none);
  const Value value = by_path ? at_path(item, *path, nullptr, interpreter) : item;
  if (case_sensitive || !value.is(Kind::string)) return value;
  return Value::of(change_case(*value.string, Case::lower, interpreter.arena()));
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

struct Keyed {
  Value key;
  Value item;
};

/// n·log n steps, counted before they are made.
void stable_sort_keyed(std::vector<Keyed>& keyed, bool reversed, Arena& arena) {
  uint64_t rounds = 1;
  while ((keyed.size() >> rounds) != 0) ++rounds;
  arena.step(keyed.size() * rounds);
  arena.charge(keyed.size() * sizeof(Keyed));
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? compare(b.key, a.key) < 0 : compare(a.key, b.key) < 0;
  });
}

Value filter_sort(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  Arena& arena = interpreter.arena();
  std::vector<Keyed> keyed;
  for (const Value& item : iterate(subject, arena)->items) {
    arena.step();
    Value key;
    if (bound.set(2) && bound.at(2).is(Kind::string) &&
        bound.at(2).string->bytes.find(',') != std::string::npos) {
      List* keys = arena.list();
      for (const Value& path : split(*bound.at(2).string, arena.refer(","), -1, arena)->items) {
        push(*keys, sort_key(item, &path, bound.flag(1), interpreter), arena);
      }
      key = Value::of(keys);
    } else {
      key = sort_key(item, bound.get(2), bound.flag(1), interpreter);
    }
    keyed.push_back({key, item});
  }
  stable_sort_keyed(keyed, bound.flag(0), arena);
  List* result = arena.list();
  for (const Keyed& each : keyed) push(*result, each.item, arena);
  return Value::of(result);
}

Value pair(const Value& first, const Value& second, Arena& arena) {
  List* two = arena.list(List::Type::tuple);
  arena.charge(2 * sizeof(Value));
  two->items = {first, second};
  return Value::of(two);
}

Value filter_dictsort(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!subject.is(Kind::dict)) type_error("'dictsort'", subject);
  const std::string_view by = bound.has(1) ? to_string(bound.at(1), "dictsort").bytes : "key";
  if (by != "key" && by != "value")
    fail(ErrorKind::model, "'dictsort' sorts by 'key' or 'value', not '{}'", by);
  Arena& arena = interpreter.arena();
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : subject.dict->items) {
    arena.step();
    keyed.push_back(
        {sort_key(by == "key" ? key : value, nullptr, bound.flag(0), interpreter), pair(key, value, arena)});
  }
  stable_sort_keyed(keyed, bound.flag(2), arena);
  List* result = arena.list();
  for (const Keyed& each : keyed) push(*result, each.item, arena);
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

Value filter_unique(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  Arena& arena = interpreter.arena();
  Dict* seen = arena.dict();
  List* result = arena.list(List::Type::generator);
  for (const Value& item : iterate(subject, arena)->items) {
    const Value key = sort_key(item, bound.get(1), bound.flag(0), interpreter);
    arena.step(key.is(Kind::string) ? 1 : seen->items.size());
    if (seen->find(key) != nullptr) continue;
    arena.charge(2 * sizeof(Value));
    seen->set(key, key);
    push(*result, item, arena);
  }
  return Value::of(result);
}

template <bool kMax>
Value filter_extreme(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound(kMax ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  Arena& arena = interpreter.arena();
  std::optional<Keyed> best;
  for (const Value& item : iterate(subject, arena)->items) {
    arena.step();
    const Value key = sort_key(item, bound.get(1), bound.flag(0), interpreter);
    if (!best || (kMax ? compare(key, best->key) > 0 : compare(key, best->key) < 0)) best = Keyed{key, item};
  }
  return best ? best->item : arena.undefined("the extreme of nothing");
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

Value filter_groupby(const Value& subject, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"});
  Arena& arena = interpreter.arena();
  std::vector<Keyed> keyed;
  for (const Value& item : iterate(subject, arena)->items) {
    arena.step();
    const Value value = at_path(item, bound.at(0), bound.get(1), interpreter);
    keyed.push_back({sort_key(value, nullptr, bound.flag(2), interpreter), item});
  }
  stable_sort_keyed(keyed, false, arena);
  List* result = arena.list();
  List* group = nullptr;
  const Value* last = nullptr;
  for (const Keyed& each : keyed) {
    if (last == nullptr || !equal(*last, each.key)) {
      group = arena.list();
      // The group's name keeps the case of its first member.
      const Value name = at_path(each.item, bound.at(0), bound.get(1), interpreter);
      push(*result, pair(name, Value::of(group), arena), arena);
    }
    last = &each.key;
    push(*group, each.item, arena);
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
    NamedFilter{"sort", filter_sort},
    NamedFilter{"dictsort", filter_dictsort},
    NamedFilter{"items", filter_items},
    NamedFilter{"unique", filter_unique},
    NamedFilter{"max", filter_extreme<true>},
    NamedFilter{"min", filter_extreme<false>},
    NamedFilter{"sum", filter_sum},
    NamedFilter{"batch", filter_batch},
    NamedFilter{"slice", filter_slice},
    NamedFilter{"groupby", filter_groupby},
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
