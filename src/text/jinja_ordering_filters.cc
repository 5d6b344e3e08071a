// Filters that order, group and compare.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/error.h"
#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_sequences.h"
#include "text/jinja_strings.h"

namespace retro::text::jinja {

void push(List& list, const Value& value, Arena& arena) {
  arena.charge(sizeof(Value));
  arena.step();
  list.items.push_back(value);
}

Value pair(const Value& first, const Value& second, Arena& arena) {
  List* two = arena.list(List::Type::tuple);
  arena.charge(2 * sizeof(Value));
  two->items = {first, second};
  return Value::of(two);
}

namespace {

bool is_index(std::string_view part) {
  return !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

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

Value sort_key(const Value& item, const Value* path, bool case_sensitive, Interpreter& interpreter) {
  const bool by_path = path != nullptr && !path->is(Kind::none);
  const Value value = by_path ? at_path(item, *path, nullptr, interpreter) : item;
  if (case_sensitive || !value.is(Kind::string)) return value;
  return Value::of(change_case(*value.string, Case::lower, interpreter.arena()));
}

namespace {

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

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr std::array kFilters = {
    NamedFilter{"sort", filter_sort},          NamedFilter{"dictsort", filter_dictsort},
    NamedFilter{"unique", filter_unique},      NamedFilter{"max", filter_extreme<true>},
    NamedFilter{"min", filter_extreme<false>}, NamedFilter{"groupby", filter_groupby},
};

}  // namespace

Filter find_ordering_filter(std::string_view name) {
  for (const NamedFilter& each : kFilters) {
    if (each.name == name) return each.filter;
  }
  return nullptr;
}

}  // namespace retro::text::jinja
