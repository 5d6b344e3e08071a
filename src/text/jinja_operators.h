// Python's operators on template values, and the binding of call arguments.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace retro::text::jinja {

/// left op right for the arithmetic operators. Throws Error(model) where Python raises.
Value binary(Op op, const Value& left, const Value& right, Arena& arena);
bool contains(const Value& container, const Value& item, Arena& arena);
bool compare_with(Op op, const Value& left, const Value& right, Arena& arena);
Value negate(const Value& value);
/// container[begin:end:step]; a null pointer is a bound that was left out.
Value slice(const Value& container, const Value* begin, const Value* end, const Value* step, Arena& arena);
/// container[index] of a string or list; undefined out of range.
Value element(const Value& container, int64_t index, Arena& arena);
/// left + right, escaping where one side is marked safe.
const Str* concatenate(const Str& left, const Str& right, Arena& arena);
/// The HTML-escaped string, marked safe.
const Str* escape_html(const Str& string, Arena& arena);

/// Throws Error(model), naming the value, where it is undefined.
void require_defined(const Value& value);
[[noreturn]] void type_error(std::string_view operation, const Value& value);

int64_t to_integer(const Value& value, std::string_view what);
double to_real(const Value& value, std::string_view what);
const Str& to_string(const Value& value, std::string_view what);

/// Arguments matched to parameter names. Throws Error(model) for one too many or an unknown name.
class Bound {
 public:
  Bound(std::string_view callee, const Arguments& arguments, std::initializer_list<std::string_view> names);

  bool has(size_t index) const { return values_[index] != nullptr; }
  /// Throws Error(model) where the argument is missing.
  const Value& at(size_t index) const;
  const Value* get(size_t index) const { return values_[index]; }
  bool flag(size_t index, bool fallback = false) const;
  int64_t integer(size_t index, int64_t fallback) const;
  /// True where the argument is given and not None.
  bool set(size_t index) const { return has(index) && !values_[index]->is(Kind::none); }

 private:
  static constexpr size_t kMax = 6;
  std::string_view callee_;
  std::array<const Value*, kMax> values_{};
};

}  // namespace retro::text::jinja
