#include "text/jinja_value.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

constexpr int kMaxNesting = 200;
constexpr size_t kIndexedFrom = 16;

}  // namespace

Value Value::with_kind(Kind kind) {
  Value value;
  value.kind = kind;
  return value;
}

Value Value::of(bool value) {
  Value result = with_kind(Kind::boolean);
  result.boolean = value;
  return result;
}

Value Value::of(int64_t value) {
  Value result = with_kind(Kind::integer);
  result.integer = value;
  return result;
}

Value Value::of(double value) {
  Value result = with_kind(Kind::real);
  result.real = value;
  return result;
}

Value Value::of(const Str* value) {
  Value result = with_kind(Kind::string);
  result.string = value;
  result.origin = value->origin;
  return result;
}

Value Value::of(List* value) {
  Value result = with_kind(Kind::list);
  result.list = value;
  return result;
}

Value Value::of(Dict* value, Kind kind) {
  Value result = with_kind(kind);
  result.dict = value;
  return result;
}

Value Value::of(Object* value) {
  Value result = with_kind(Kind::object);
  result.object = value;
  return result;
}

Value Object::attribute(std::string_view name, Interpreter&) {
  (void)name;
  return {};
}

const Value* Dict::find(std::string_view key) const {
  if (items.size() > kIndexedFrom) {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : &items[found->second].second;
  }
  for (const auto& [name, value] : items) {
    if (name.is(Kind::string) && name.string->bytes == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is(Kind::string)) return find(key.string->bytes);
  for (const auto& [name, value] : items) {
    if (!name.is(Kind::string) && equal(name, key)) return &value;
  }
  return nullptr;
}

void Dict::set(const Value& key, const Value& value) {
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = value;
    return;
  }
  items.emplace_back(key, value);
  if (items.size() == kIndexedFrom + 1) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].first.is(Kind::string)) index.emplace(items[i].first.string->bytes, i);
    }
  } else if (items.size() > kIndexedFrom + 1 && key.is(Kind::string)) {
    index.emplace(key.string->bytes, items.size() - 1);
  }
}

bool truthy(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean;
    case Kind::integer:
      return value.integer != 0;
    case Kind::real:
      return value.real != 0;
    case Kind::string:
      return !value.string->bytes.empty();
    case Kind::list:
      return value.list->type == List::Type::generator || !value.list->items.empty();
    case Kind::dict:
      return !value.dict->items.empty();
    case Kind::space:
    case Kind::object:
      return true;
  }
  return false;
}

std::string type_name(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return "str";
    case Kind::list:
      switch (value.list->type) {
        case List::Type::list:
          return "list";
        case List::Type::tuple:
          return "tuple";
        case List::Type::range:
          return "range";
        case List::Type::generator:
          return "generator";
        default:
          return "dict view";
      }
    case Kind::dict:
      return "dict";
    case Kind::space:
      return "Namespace";
    case Kind::object:
      return value.object->describe();
  }
  return "object";
}

namespace {

double as_real(const Value& value) {
  if (value.is(Kind::real)) return value.real;
  return value.is(Kind::boolean) ? (value.boolean ? 1.0 : 0.0) : static_cast<double>(value.integer);
}

int64_t as_integer(const Value& value) {
  return value.is(Kind::boolean) ? (value.boolean ? 1 : 0) : value.integer;
}

bool ordered(const Value& value) {
  return value.is(Kind::list) &&
         (value.list->type == List::Type::list || value.list->type == List::Type::tuple);
}

void check_depth(int depth) {
  if (depth > kMaxNesting) fail(ErrorKind::model, "values are nested deeper than {} levels", kMaxNesting);
}

bool equal_dicts(const Dict& left, const Dict& right, int depth) {
  if (left.items.size() != right.items.size()) return false;
  for (const auto& [key, value] : left.items) {
    const Value* other = right.find(key);
    if (other == nullptr || !equal(value, *other, depth + 1)) return false;
  }
  return true;
}

}  // namespace

bool equal(const Value& left, const Value& right, int depth) {
  check_depth(depth);
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::real) || right.is(Kind::real)) return as_real(left) == as_real(right);
    return as_integer(left) == as_integer(right);
  }
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      return left.string->bytes == right.string->bytes;
    case Kind::list: {
      if (left.list == right.list) return true;
      const auto& a = left.list->items;
      const auto& b = right.list->items;
      if (left.list->type != right.list->type || left.list->type == List::Type::generator) return false;
      if (a.size() != b.size()) return false;
      for (size_t i = 0; i < a.size(); ++i) {
        if (!equal(a[i], b[i], depth + 1)) return false;
      }
      return true;
    }
    case Kind::dict:
      return left.dict == right.dict || equal_dicts(*left.dict, *right.dict, depth);
    case Kind::space:
      return left.dict == right.dict;
    default:
      return left.object == right.object;
  }
}

int compare(const Value& left, const Value& right, int depth) {
  check_depth(depth);
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::real) || right.is(Kind::real)) {
      const double a = as_real(left);
      const double b = as_real(right);
      return a < b ? -1 : (a > b ? 1 : 0);
    }
    const int64_t a = as_integer(left);
    const int64_t b = as_integer(right);
    return a < b ? -1 : (a > b ? 1 : 0);
  }
  if (left.is(Kind::string) && right.is(Kind::string)) return left.string->bytes.compare(right.string->bytes);
  if (ordered(left) && ordered(right) && left.list->type == right.list->type) {
    const auto& a = left.list->items;
    const auto& b = right.list->items;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equal(a[i], b[i], depth + 1)) return compare(a[i], b[i], depth + 1);
    }
    return a.size() < b.size() ? -1 : (a.size() > b.size() ? 1 : 0);
  }
  if (left.is(Kind::undefined) || right.is(Kind::undefined)) {
    const Value& missing = left.is(Kind::undefined) ? left : right;
    fail(ErrorKind::model, "'{}' is undefined", missing.string != nullptr ? missing.string->bytes : "value");
  }
  fail(ErrorKind::model, "'{}' and '{}' have no order", type_name(left), type_name(right));
}

int64_t length(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return static_cast<int64_t>(count_characters(value.string->bytes));
    case Kind::list:
      if (value.list->type == List::Type::generator) break;
      return static_cast<int64_t>(value.list->items.size());
    case Kind::dict:
      return static_cast<int64_t>(value.dict->items.size());
    default:
      break;
  }
  fail(ErrorKind::model, "a value of type '{}' has no length", type_name(value));
}

List* iterate(const Value& value, Arena& arena) {
  switch (value.kind) {
    case Kind::undefined:
      return arena.list();
    case Kind::list: {
      if (value.list->type != List::Type::generator) return value.list;
      List* rest = arena.list();
      if (!value.list->consumed) rest->items = value.list->items;
      value.list->consumed = true;
      return rest;
    }
    case Kind::dict: {
      List* keys = arena.list();
      arena.step(value.dict->items.size());
      arena.charge(value.dict->items.size() * sizeof(Value));
      for (const auto& item : value.dict->items) keys->items.push_back(item.first);
      return keys;
    }
    case Kind::string: {
      List* characters = arena.list();
      const Str& string = *value.string;
      for (size_t at = 0; at < string.bytes.size();) {
        const size_t size = code_point_at(string.bytes, at).size;
        arena.step();
        arena.charge(sizeof(Value));
        characters->items.push_back(Value::of(arena.slice(string, at, at + size)));
        at += size;
      }
      return characters;
    }
    default:
      break;
  }
  fail(ErrorKind::model, "a value of type '{}' cannot be looped over", type_name(value));
}

namespace {

Value from_json_at(const nlohmann::ordered_json& json, Origin origin, Arena& arena, int depth) {
  if (depth > kMaxNesting) fail(ErrorKind::data, "nested deeper than {} levels", kMaxNesting);
  arena.charge(sizeof(Value));
  Value value;
  if (json.is_string()) return arena.string(json.get_ref<const std::string&>(), origin);
  if (json.is_boolean()) {
    value = Value::of(json.get<bool>());
  } else if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) {
    fail(ErrorKind::data, "the integer {} is beyond 64 signed bits; write it as a string",
         json.get<uint64_t>());
  } else if (json.is_number_integer()) {
    value = Value::of(json.get<int64_t>());
  } else if (json.is_number_float()) {
    value = Value::of(json.get<double>());
  } else if (json.is_array()) {
    List* list = arena.list();
    list->items.reserve(json.size());
    for (const auto& item : json) list->items.push_back(from_json_at(item, origin, arena, depth + 1));
    value = Value::of(list);
  } else if (json.is_object()) {
    Dict* dict = arena.dict();
    for (const auto& [key, item] : json.items()) {
      dict->set(arena.string(key, origin), from_json_at(item, origin, arena, depth + 1));
    }
    value = Value::of(dict);
  } else {
    value = Value::none();
  }
  value.origin = origin;
  return value;
}

}  // namespace

Value from_json(const nlohmann::ordered_json& json, Origin origin, Arena& arena) {
  return from_json_at(json, origin, arena, 0);
}

}  // namespace retro::text::jinja
