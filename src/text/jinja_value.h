// The values of a Jinja template: Python's, as far as templates can tell, with origins on every string.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/rendering.h"

namespace retro::text::jinja {

enum class Kind : uint8_t { undefined, none, boolean, integer, real, string, list, dict, space, object };

struct List;
struct Dict;
struct Object;

/// A Unicode string (UTF-8). With no runs every byte has `origin`.
struct Str {
  std::string_view bytes;
  std::span<const Run> runs;
  Origin origin;
  bool markup = false;  ///< marked safe: concatenation escapes the other side, as markupsafe does
};

/// One value; whatever it points to lives in the arena of the rendering (or of the template, for constants).
struct Value {
  Kind kind = Kind::undefined;
  Origin origin;  ///< of a scalar or container that came from the input; its text inherits it
  union {
    bool boolean;
    int64_t integer = 0;
    double real;
    const Str* string;  ///< of an undefined value: its name, or null
    List* list;
    Dict* dict;  ///< of a dict, and the fields of a namespace
    Object* object;
  };

  static Value none() { return with_kind(Kind::none); }
  static Value of(bool value);
  static Value of(int64_t value);
  static Value of(double value);
  static Value of(const Str* value);
  static Value of(List* value);
  static Value of(Dict* value, Kind kind = Kind::dict);
  static Value of(Object* value);

  bool is(Kind other) const { return kind == other; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean; }

 private:
  static Value with_kind(Kind kind);
};

/// Python's ordered iterables. A generator is consumed by its first reader and is always true.
struct List {
  enum class Type : uint8_t { list, tuple, range, generator, dict_keys, dict_values, dict_items };
  std::vector<Value> items;
  Type type = Type::list;
  bool consumed = false;
};

/// Insertion-ordered; string keys are indexed once the dict is large.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  std::unordered_map<std::string_view, size_t> index;

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;
  void set(const Value& key, const Value& value);
};

class Interpreter;

/// The arguments of a call, evaluated.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

/// A value with behaviour of its own: a macro, a bound method, a built-in function, `loop`.
struct Object {
  virtual ~Object() = default;
  virtual std::string describe() const = 0;
  virtual bool callable() const { return true; }
  virtual Value call(const Arguments& arguments, Interpreter& interpreter) = 0;
  /// The attribute `name`; undefined where there is none.
  virtual Value attribute(std::string_view name, Interpreter& interpreter);
};

/// What a rendering may spend; a template that needs more is refused.
struct Limits {
  uint64_t steps = 4'000'000;
  uint64_t bytes = 192ULL << 20;
  int depth = 1200;
};

/// Owns every object of a rendering, and counts what it spends. Objects live until the arena goes, so cycles
/// and deep nesting need no care.
class Arena {
 public:
  explicit Arena(const Limits& limits = {}) : limits_(limits) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Counts `count` units of work; throws Error(model) past the limit.
  void step(uint64_t count = 1);
  /// Counts `count` bytes of memory; throws Error(model) past the limit.
  void charge(uint64_t count);
  const Limits& limits() const { return limits_; }

  /// A string that refers to `bytes`, which must outlive the arena.
  const Str* refer(std::string_view bytes, Origin origin = {}, bool markup = false);
  const Str* copy(std::string_view bytes, Origin origin = {}, bool markup = false);
  const Str* adopt(const std::string& bytes, std::span<const Run> runs, bool markup = false);
  /// Bytes [begin, end) of `string`, without copying them.
  const Str* slice(const Str& string, size_t begin, size_t end);

  List* list(List::Type type = List::Type::list);
  Dict* dict();
  Object* adopt(std::unique_ptr<Object> object);

  Value string(std::string_view bytes, Origin origin = {}) { return Value::of(copy(bytes, origin)); }
  Value undefined(std::string_view name);

 private:
  Limits limits_;
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
  std::pmr::monotonic_buffer_resource memory_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::vector<std::unique_ptr<Object>> objects_;
};

/// Appends text piece by piece, keeping origins.
class TextBuilder {
 public:
  explicit TextBuilder(Arena& arena) : arena_(arena) {}
  void append(std::string_view bytes, Origin origin = {});
  void append(const Str& string);
  /// Bytes [begin, end) of `string`.
  void append(const Str& string, size_t begin, size_t end);
  const Str* finish(bool markup = false) { return arena_.adopt(text_.text, text_.runs, markup); }
  Rendered take() { return std::move(text_); }
  Arena& arena() { return arena_; }
  bool empty() const { return text_.text.empty(); }

 private:
  Arena& arena_;
  Rendered text_;
};

/// JSON to a value, keeping the order of keys; every part gets `origin`.
/// Throws Error(data) where it is nested too deeply or holds an integer beyond 64 bits.
Value from_json(const nlohmann::ordered_json& json, Origin origin, Arena& arena);

bool truthy(const Value& value);
/// Python's ==; `depth` guards nested containers.
bool equal(const Value& left, const Value& right, int depth = 0);
/// Python's <, <=, … on numbers, strings and lists: negative, 0, positive. Throws Error(model) where Python
/// would.
int compare(const Value& left, const Value& right, int depth = 0);
/// "str", "int", "dict" …, as in Python's messages.
std::string type_name(const Value& value);

/// str(value), with origins. An undefined value is empty.
const Str* to_str(const Value& value, Arena& arena);
void append_str(const Value& value, TextBuilder& out);
void append_repr(const Value& value, TextBuilder& out, int depth = 0);
/// repr(float): the shortest digits that read back.
std::string format_real(double value);

/// The elements that a loop over `value` sees (characters of a string, keys of a dict); consumes a generator.
/// Throws Error(model) where the value cannot be iterated.
List* iterate(const Value& value, Arena& arena);
/// len(value). Throws Error(model) where Python would.
int64_t length(const Value& value);

}  // namespace retro::text::jinja
