// Objects with behaviour: macros, `loop`, bound methods and the built-in functions.
#pragma once

#include <memory>
#include <string_view>

#include "base/error.h"
#include "text/jinja_eval.h"

namespace retro::text::jinja {

/// What raise_exception throws: the template refuses the conversation.
class Refusal : public Error {
 public:
  using Error::Error;
};

std::unique_ptr<Object> make_macro(const Stmt& node, Scope* scope);

/// The variable `loop` of one loop.
struct LoopObject : Object {
  const Stmt* node = nullptr;
  Scope* scope = nullptr;
  const List* items = nullptr;
  size_t index = 0;
  int depth = 1;
  std::vector<Value> last_changed;
  bool changed_before = false;

  std::string describe() const override { return "loop"; }
  Value call(const Arguments& arguments, Interpreter& interpreter) override;
  Value attribute(std::string_view name, Interpreter& interpreter) override;
};

LoopObject* make_loop(const Stmt& node, Scope* scope, const List* items, int depth, Arena& arena);

/// A method of a string, list or dict: `self` is the receiver.
using Method = Value (*)(const Value& self, const Arguments& arguments, Interpreter& interpreter);
/// The method `name` of `self`'s type; null where Python's immutable sandbox has none.
Method find_method(const Value& self, std::string_view name);
/// A method that changes its receiver, which a template may not.
bool is_mutating_method(const Value& self, std::string_view name);
std::unique_ptr<Object> bind_method(std::string_view name, const Value& self, Method method);

}  // namespace retro::text::jinja
