// The methods of strings, lists and dicts that a template may call.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/jinja_format.h"
#include "text/jinja_functions.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

/// The optional argument that is a string or None.
const Str* optional_string(const Bound& bound, size_t index, std::string_view what) {
  return bound.set(index) ? &to_string(bound.at(index), what) : nullptr;
}

template <bool kLeft, bool kRight>
Value str_strip(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("strip", arguments, {"chars"});
  const Str* characters = optional_string(bound, 0, "strip");
  return Value::of(strip(*self.string, characters, kLeft, kRight, interpreter.arena()));
}

template <bool kRight>
Value str_split(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("split", arguments, {"sep", "maxsplit"});
  const Str* separator = optional_string(bound, 0, "split");
  const int64_t limit = bound.integer(1, -1);
  return Value::of(kRight ? rsplit(*self.string, separator, limit, interpreter.arena())
                          : split(*self.string, separator, limit, interpreter.arena()));
}

Value str_split_lines(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("splitlines", arguments, {"keepends"});
  return Value::of(split_lines(*self.string, bound.flag(0), interpreter.arena()));
}

template <bool kStart>
Value str_affix(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound(kStart ? "startswith" : "endswith", arguments, {"affix", "start", "end"});
  const Str& text = *slice(self, bound.get(1), bound.get(2), nullptr, interpreter.arena()).string;
  const auto matches = [&](const Value& affix) {
    const std::string_view bytes = to_string(affix, "startswith").bytes;
    return kStart ? text.bytes.starts_with(bytes) : text.bytes.ends_with(bytes);
  };
  const Value& affix = bound.at(0);
  if (!affix.is(Kind::list) || affix.list->type != List::Type::tuple) return Value::of(matches(affix));
  return Value::of(std::any_of(affix.list->items.begin(), affix.list->items.end(), matches));
}

template <bool kStart>
Value str_remove(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound(kStart ? "removeprefix" : "removesuffix", arguments, {"affix"});
  const std::string_view affix = to_string(bound.at(0), "removeprefix").bytes;
  const std::string_view bytes = self.string->bytes;
  if (!(kStart ? bytes.starts_with(affix) : bytes.ends_with(affix))) return self;
  return Value::of(interpreter.arena().slice(*self.string, kStart ? affix.size() : 0,
                                             kStart ? bytes.size() : bytes.size() - affix.size()));
}

template <Case kCase>
Value str_case(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  Bound("upper", arguments, {});
  return Value::of(change_case(*self.string, kCase, interpreter.arena()));
}

Value str_replace(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("replace", arguments, {"old", "new", "count"});
  return Value::of(replace(*self.string, to_string(bound.at(0), "replace"), to_string(bound.at(1), "replace"),
                           bound.integer(2, -1), interpreter.arena()));
}

Value str_join(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("join", arguments, {"iterable"});
  const List* parts = iterate(bound.at(0), interpreter.arena());
  for (const Value& part : parts->items) to_string(part, "join");
  return Value::of(join(*parts, *self.string, interpreter.arena()));
}

template <bool kLast, bool kMust>
Value str_find(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound(kMust ? "index" : "find", arguments, {"sub", "start", "end"});
  const int64_t at = find(*self.string, to_string(bound.at(0), "find"), kLast, bound.get(1), bound.get(2),
                          interpreter.arena());
  if (kMust && at < 0) fail(ErrorKind::model, "'index' finds no such part");
  return Value::of(at);
}

Value str_count(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("count", arguments, {"sub", "start", "end"});
  const Str& text = *slice(self, bound.get(1), bound.get(2), nullptr, interpreter.arena()).string;
  interpreter.arena().step(text.bytes.size() / 16);
  return Value::of(count(text, to_string(bound.at(0), "count")));
}

template <int kSide>
Value str_pad(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("ljust", arguments, {"width", "fillchar"});
  const std::string_view fill = bound.has(1) ? to_string(bound.at(1), "ljust").bytes : " ";
  if (count_characters(fill) != 1) fail(ErrorKind::model, "padding takes one character");
  return Value::of(pad(*self.string, to_integer(bound.at(0), "ljust"), fill, kSide, interpreter.arena()));
}

Value str_zfill(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("zfill", arguments, {"width"});
  Arena& arena = interpreter.arena();
  const Str& text = *self.string;
  const bool sign = text.bytes.starts_with('-') || text.bytes.starts_with('+');
  const int64_t width = to_integer(bound.at(0), "zfill");
  if (!sign) return Value::of(pad(text, width, "0", 1, arena));
  const Str* digits = pad(*arena.slice(text, 1, text.bytes.size()), width - 1, "0", 1, arena);
  return Value::of(concatenate(*arena.slice(text, 0, 1), *digits, arena));
}

template <bool kLast>
Value str_partition(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("partition", arguments, {"sep"});
  const std::string_view separator = to_string(bound.at(0), "partition").bytes;
  if (separator.empty()) fail(ErrorKind::model, "'partition' is given an empty separator");
  Arena& arena = interpreter.arena();
  const Str& text = *self.string;
  const size_t size = text.bytes.size();
  arena.step(size / 64);
  const size_t at = kLast ? text.bytes.rfind(separator) : text.bytes.find(separator);
  List* parts = arena.list(List::Type::tuple);
  const size_t first = at != std::string_view::npos ? at : kLast ? 0 : size;
  const size_t second = at != std::string_view::npos ? at + separator.size() : first;
  parts->items = {Value::of(arena.slice(text, 0, first)), Value::of(arena.slice(text, first, second)),
                  Value::of(arena.slice(text, second, size))};
  return Value::of(parts);
}

bool is_title_or_number(int32_t c) {
  return is_alphanumeric(c);
}
bool is_identifier_part(int32_t c) {
  return c == '_' || is_alphanumeric(c);
}
bool is_ascii_character(int32_t c) {
  return c < 0x80;
}

/// str.isX: every character has the property and, but for isascii, there is one.
template <bool (*kProperty)(int32_t), bool kEmpty = false>
Value str_is(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  Bound("isdigit", arguments, {});
  const std::string_view bytes = self.string->bytes;
  interpreter.arena().step(bytes.size() / 16);
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = code_point_at(bytes, at);
    if (!kProperty(point.value)) return Value::of(false);
    at += point.size;
  }
  return Value::of(kEmpty || !bytes.empty());
}

/// str.isupper, str.islower: no cased character of the other kind, and at least one cased.
template <bool kUpper>
Value str_is_case(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  Bound("isupper", arguments, {});
  const std::string_view bytes = self.string->bytes;
  interpreter.arena().step(bytes.size() / 16);
  bool any = false;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = code_point_at(bytes, at);
    if (kUpper ? is_cased_lower(point.value) : is_cased_upper(point.value)) return Value::of(false);
    any |= kUpper ? is_cased_upper(point.value) : is_cased_lower(point.value);
    at += point.size;
  }
  return Value::of(any);
}

Value str_format(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  return Value::of(format_braces(*self.string, arguments, interpreter));
}

template <List::Type kType>
Value dict_view(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  Bound("items", arguments, {});
  Arena& arena = interpreter.arena();
  List* view = arena.list(kType);
  const auto& items = self.dict->items;
  arena.step(items.size());
  arena.charge(items.size() * sizeof(Value));
  view->items.reserve(items.size());
  for (const auto& [key, value] : items) {
    if (kType == List::Type::dict_items) {
      List* pair = arena.list(List::Type::tuple);
      pair->items = {key, value};
      arena.charge(2 * sizeof(Value));
      view->items.push_back(Value::of(pair));
    } else {
      view->items.push_back(kType == List::Type::dict_keys ? key : value);
    }
  }
  return Value::of(view);
}

Value dict_get(const Value& self, const Arguments& arguments, Interpreter&) {
  const Bound bound("get", arguments, {"key", "default"});
  if (const Value* found = self.dict->find(bound.at(0))) return *found;
  return bound.has(1) ? bound.at(1) : Value::none();
}

Value dict_copy(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  Bound("copy", arguments, {});
  Dict* copy = interpreter.arena().dict();
  interpreter.arena().charge(self.dict->items.size() * 2 * sizeof(Value));
  interpreter.arena().step(self.dict->items.size());
  *copy = *self.dict;
  return Value::of(copy);
}

Value list_count(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("count", arguments, {"value"});
  interpreter.arena().step(self.list->items.size());
  return Value::of(
      static_cast<int64_t>(std::count_if(self.list->items.begin(), self.list->items.end(),
                                         [&](const Value& item) { return equal(item, bound.at(0)); })));
}

Value list_index(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("index", arguments, {"value"});
  interpreter.arena().step(self.list->items.size());
  for (size_t i = 0; i < self.list->items.size(); ++i) {
    if (equal(self.list->items[i], bound.at(0))) return Value::of(static_cast<int64_t>(i));
  }
  fail(ErrorKind::model, "'index' finds no such item");
}

Value list_copy(const Value& self, const Arguments& arguments, Interpreter& interpreter) {
  Bound("copy", arguments, {});
  return slice(self, nullptr, nullptr, nullptr, interpreter.arena());
}

struct NamedMethod {
  std::string_view name;
  Method method;
};

constexpr std::array kStringMethods = {
    NamedMethod{"strip", str_strip<true, true>},
    NamedMethod{"lstrip", str_strip<true, false>},
    NamedMethod{"rstrip", str_strip<false, true>},
    NamedMethod{"split", str_split<false>},
    NamedMethod{"rsplit", str_split<true>},
    NamedMethod{"splitlines", str_split_lines},
    NamedMethod{"startswith", str_affix<true>},
    NamedMethod{"endswith", str_affix<false>},
    NamedMethod{"removeprefix", str_remove<true>},
    NamedMethod{"removesuffix", str_remove<false>},
    NamedMethod{"upper", str_case<Case::upper>},
    NamedMethod{"lower", str_case<Case::lower>},
    NamedMethod{"casefold", str_case<Case::lower>},
    NamedMethod{"title", str_case<Case::title>},
    NamedMethod{"capitalize", str_case<Case::capitalize>},
    NamedMethod{"swapcase", str_case<Case::swap>},
    NamedMethod{"replace", str_replace},
    NamedMethod{"join", str_join},
    NamedMethod{"find", str_find<false, false>},
    NamedMethod{"rfind", str_find<true, false>},
    NamedMethod{"index", str_find<false, true>},
    NamedMethod{"rindex", str_find<true, true>},
    NamedMethod{"count", str_count},
    NamedMethod{"ljust", str_pad<0>},
    NamedMethod{"rjust", str_pad<1>},
    NamedMethod{"center", str_pad<2>},
    NamedMethod{"zfill", str_zfill},
    NamedMethod{"partition", str_partition<false>},
    NamedMethod{"rpartition", str_partition<true>},
    NamedMethod{"isdigit", str_is<is_decimal>},
    NamedMethod{"isdecimal", str_is<is_decimal>},
    NamedMethod{"isnumeric", str_is<is_decimal>},
    NamedMethod{"isalpha", str_is<is_letter>},
    NamedMethod{"isalnum", str_is<is_title_or_number>},
    NamedMethod{"isspace", str_is<is_space>},
    NamedMethod{"isprintable", str_is<is_printable, true>},
    NamedMethod{"isidentifier", str_is<is_identifier_part>},
    NamedMethod{"isascii", str_is<is_ascii_character, true>},
    NamedMethod{"isupper", str_is_case<true>},
    NamedMethod{"islower", str_is_case<false>},
    NamedMethod{"format", str_format},
};
constexpr std::array kDictMethods = {
    NamedMethod{"items", dict_view<List::Type::dict_items>},
    NamedMethod{"keys", dict_view<List::Type::dict_keys>},
    NamedMethod{"values", dict_view<List::Type::dict_values>},
    NamedMethod{"get", dict_get},
    NamedMethod{"copy", dict_copy},
};
constexpr std::array kListMethods = {
    NamedMethod{"count", list_count},
    NamedMethod{"index", list_index},
    NamedMethod{"copy", list_copy},
};
constexpr std::array<std::string_view, 7> kMutatingList = {"append", "extend",  "insert", "pop",
                                                           "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 5> kMutatingDict = {"clear", "pop", "popitem", "setdefault", "update"};

template <size_t N>
Method lookup(const std::array<NamedMethod, N>& table, std::string_view name) {
  for (const NamedMethod& each : table) {
    if (each.name == name) return each.method;
  }
  return nullptr;
}

}  // namespace

Method find_method(const Value& self, std::string_view name) {
  if (self.is(Kind::string)) return lookup(kStringMethods, name);
  if (self.is(Kind::dict)) return lookup(kDictMethods, name);
  if (!self.is(Kind::list) || self.list->type > List::Type::range) return nullptr;
  const Method method = lookup(kListMethods, name);
  return name == "copy" && self.list->type != List::Type::list ? nullptr : method;
}

bool is_mutating_method(const Value& self, std::string_view name) {
  if (self.is(Kind::dict))
    return std::find(kMutatingDict.begin(), kMutatingDict.end(), name) != kMutatingDict.end();
  return self.is(Kind::list) && self.list->type == List::Type::list &&
         std::find(kMutatingList.begin(), kMutatingList.end(), name) != kMutatingList.end();
}

}  // namespace retro::text::jinja
