// Expressions, calls and attributes.
#include <algorithm>

#include "base/error.h"
#include "text/jinja_eval.h"
#include "text/jinja_functions.h"
#include "text/jinja_operators.h"

namespace retro::text::jinja {

Value Interpreter::evaluate(const Expr& node) {
  const DepthGuard guard(*this);
  arena_.step();
  line_ = node.line;
  switch (node.kind) {
    case ExprKind::constant:
      return node.value;
    case ExprKind::name:
      return evaluate_name(node);
    case ExprKind::list:
    case ExprKind::tuple:
      return evaluate_container(node);
    case ExprKind::dict:
      return evaluate_dict(node);
    case ExprKind::attribute:
      return attribute(evaluate(*node.items[0]), node.name);
    case ExprKind::slice:
      return evaluate_slice(node);
    case ExprKind::call:
      return evaluate_call(node);
    case ExprKind::filter:
      return evaluate_filter(node, nullptr);
    case ExprKind::test:
      return Value::of(test(node.name, evaluate(*node.items[0]), evaluate_arguments(node)));
    case ExprKind::negative:
      return negate(evaluate(*node.items[0]));
    case ExprKind::positive: {
      const Value value = evaluate(*node.items[0]);
      return value.is(Kind::real) ? value : Value::of(to_integer(value, "'+'"));
    }
    case ExprKind::logical_not:
      return Value::of(!truthy(evaluate(*node.items[0])));
    case ExprKind::logical_and: {
      const Value left = evaluate(*node.items[0]);
      return truthy(left) ? evaluate(*node.items[1]) : left;
    }
    case ExprKind::logical_or: {
      const Value left = evaluate(*node.items[0]);
      return truthy(left) ? left : evaluate(*node.items[1]);
    }
    case ExprKind::item:
    case ExprKind::binary:
      return evaluate_two(node);
    case ExprKind::concat:
      return evaluate_concat(node);
    case ExprKind::compare:
      return evaluate_compare(node);
    case ExprKind::conditional:
      return evaluate_conditional(node);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expr& node) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [id, value] : scope->values) {
      if (id == node.id) return value;
    }
  }
  if (globals_[node.id]) return *globals_[node.id];
  Value missing;
  missing.string = arena_.refer(program_.names[node.id]);
  return missing;
}

Value Interpreter::evaluate_container(const Expr& node) {
  List* list = arena_.list(node.kind == ExprKind::tuple ? List::Type::tuple : List::Type::list);
  arena_.charge(node.items.size() * sizeof(Value));
  list->items.reserve(node.items.size());
  for (const auto& item : node.items) list->items.push_back(evaluate(*item));
  return Value::of(list);
}

Value Interpreter::evaluate_dict(const Expr& node) {
  Dict* dict = arena_.dict();
  arena_.charge(node.items.size() * sizeof(Value));
  for (size_t i = 0; i < node.items.size(); i += 2) {
    const Value key = evaluate(*node.items[i]);
    if (key.is(Kind::dict) || (key.is(Kind::list) && key.list->type == List::Type::list)) {
      fail(ErrorKind::model, "a value of type '{}' cannot be a key", type_name(key));
    }
    if (!key.is(Kind::string)) arena_.step(dict->items.size());
    dict->set(key, evaluate(*node.items[i + 1]));
  }
  return Value::of(dict);
}

Value Interpreter::evaluate_two(const Expr& node) {
  const Value left = evaluate(*node.items[0]);
  const Value right = evaluate(*node.items[1]);
  line_ = node.line;
  return node.kind == ExprKind::item ? item(left, right) : binary(node.op, left, right, arena_);
}

Value Interpreter::evaluate_slice(const Expr& node) {
  const Value subject = evaluate(*node.items[0]);
  Value parts[3];
  const Value* given[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    if (!node.items[i + 1]) continue;
    parts[i] = evaluate(*node.items[i + 1]);
    given[i] = &parts[i];
  }
  return slice(subject, given[0], given[1], given[2], arena_);
}

Value Interpreter::evaluate_concat(const Expr& node) {
  // str(None) is "None" here too, as in Python; only undefined values vanish.
  TextBuilder out(arena_);
  for (const auto& item : node.items) append_str(evaluate(*item), out);
  return Value::of(out.finish());
}

Value Interpreter::evaluate_compare(const Expr& node) {
  Value left = evaluate(*node.items[0]);
  for (size_t i = 0; i < node.ops.size(); ++i) {
    const Value right = evaluate(*node.items[i + 1]);
    line_ = node.line;
    if (!compare_with(node.ops[i], left, right, arena_)) return Value::of(false);
    left = right;
  }
  return Value::of(true);
}

Value Interpreter::evaluate_conditional(const Expr& node) {
  if (truthy(evaluate(*node.items[1]))) return evaluate(*node.items[0]);
  if (node.items[2]) return evaluate(*node.items[2]);
  return arena_.undefined("the inline if without an else");
}

Arguments Interpreter::evaluate_arguments(const Expr& node) {
  Arguments arguments;
  arguments.positional.reserve(node.positional.size());
  for (const auto& argument : node.positional) arguments.positional.push_back(evaluate(*argument));
  if (node.star) {
    const List* rest = iterate(evaluate(*node.star), arena_);
    arena_.step(rest->items.size());
    arguments.positional.insert(arguments.positional.end(), rest->items.begin(), rest->items.end());
  }
  for (const auto& [name, argument] : node.named) arguments.named.emplace_back(name, evaluate(*argument));
  if (node.double_star) {
    const Value rest = evaluate(*node.double_star);
    if (!rest.is(Kind::dict)) type_error("'**'", rest);
    arena_.step(rest.dict->items.size());
    for (const auto& [key, value] : rest.dict->items) {
      arguments.named.emplace_back(to_string(key, "'**'").bytes, value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_filter(const Expr& node, const Value* subject) {
  const DepthGuard guard(*this);
  Value value;
  if (!node.items[0]) {
    value = *subject;
  } else if (node.items[0]->kind == ExprKind::filter && subject != nullptr) {
    value = evaluate_filter(*node.items[0], subject);
  } else {
    value = evaluate(*node.items[0]);
  }
  const Arguments arguments = evaluate_arguments(node);
  line_ = node.line;
  return filter(node.name, value, arguments);
}

Value Interpreter::evaluate_call(const Expr& node) {
  const Expr& callee = *node.items[0];
  if (callee.kind != ExprKind::attribute) {
    const Value target = evaluate(callee);
    const Arguments arguments = evaluate_arguments(node);
    line_ = node.line;
    return call(target, arguments);
  }
  const Value self = evaluate(*callee.items[0]);
  if (const Method method = find_method(self, callee.name)) {
    const Arguments arguments = evaluate_arguments(node);
    line_ = node.line;
    return method(self, arguments, *this);
  }
  if (is_mutating_method(self, callee.name)) {
    fail(ErrorKind::model, "'{}.{}' would change its value, which a template may not; use a namespace",
         type_name(self), callee.name);
  }
  const Value target = attribute(self, callee.name);
  if (target.is(Kind::undefined)) {
    fail(ErrorKind::model, "a value of type '{}' has no method '{}'", type_name(self), callee.name);
  }
  const Arguments arguments = evaluate_arguments(node);
  line_ = node.line;
  return call(target, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  const DepthGuard guard(*this);
  require_defined(callee);
  if (!callee.is(Kind::object) || !callee.object->callable()) {
    fail(ErrorKind::model, "a value of type '{}' cannot be called", type_name(callee));
  }
  return callee.object->call(arguments, *this);
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  require_defined(object);
  if (const Method method = find_method(object, name))
    return Value::of(arena_.adopt(bind_method(name, object, method)));
  if (object.is(Kind::dict) || object.is(Kind::space)) {
    if (const Value* found = object.dict->find(name)) return *found;
  } else if (object.is(Kind::object)) {
    const Value found = object.object->attribute(name, *this);
    if (!found.is(Kind::undefined)) return found;
  }
  return arena_.undefined(name);
}

Value Interpreter::item(const Value& object, const Value& key) {
  require_defined(object);
  if (object.is(Kind::dict)) {
    if (!key.is(Kind::string)) arena_.step(object.dict->items.size());
    if (const Value* found = object.dict->find(key)) return *found;
  } else if ((object.is(Kind::string) || object.is(Kind::list)) &&
             (key.is(Kind::integer) || key.is(Kind::boolean))) {
    const bool indexed = object.is(Kind::string) || object.list->type <= List::Type::range;
    const Value found = indexed ? element(object, to_integer(key, "an index"), arena_) : Value{};
    if (!found.is(Kind::undefined) || (indexed && found.string != nullptr)) return found;
  }
  if (key.is(Kind::string)) return attribute(object, key.string->bytes);
  return arena_.undefined(to_str(key, arena_)->bytes);
}

void Interpreter::bind_parameters(const Stmt& node, const Arguments& arguments) {
  std::vector<bool> used(arguments.named.size(), false);
  for (size_t i = 0; i < node.parameters.size(); ++i) {
    const Parameter& parameter = node.parameters[i];
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& each) { return each.first == parameter.name; });
    if (i < arguments.positional.size()) {
      if (found != arguments.named.end()) {
        fail(ErrorKind::model, "macro '{}' is given '{}' twice", node.name, parameter.name);
      }
      bind(parameter.id, arguments.positional[i]);
    } else if (found != arguments.named.end()) {
      used[static_cast<size_t>(found - arguments.named.begin())] = true;
      bind(parameter.id, found->second);
    } else if (parameter.fallback) {
      bind(parameter.id, evaluate(*parameter.fallback));
    } else {
      bind(parameter.id, arena_.undefined(parameter.name));
    }
  }
  bind_rest(node, arguments, used);
}

void Interpreter::bind_rest(const Stmt& node, const Arguments& arguments, const std::vector<bool>& used) {
  Dict* named = node.uses_kwargs ? arena_.dict() : nullptr;
  bool has_caller = false;
  for (size_t i = 0; i < arguments.named.size(); ++i) {
    const auto& [name, value] = arguments.named[i];
    if (used[i]) continue;
    if (name == "caller") {
      if (!node.uses_caller && named == nullptr) {
        fail(ErrorKind::model, "macro '{}' is called by a call block but never uses 'caller'", node.name);
      }
      has_caller = true;
      bind(program_.caller_id, value);
    } else if (named != nullptr) {
      arena_.charge(2 * sizeof(Value));
      named->set(arena_.string(name), value);
    } else {
      fail(ErrorKind::model, "macro '{}' has no argument '{}'", node.name, name);
    }
  }
  if (node.uses_caller && !has_caller) bind(program_.caller_id, arena_.undefined("caller"));
  if (named != nullptr) bind(program_.kwargs_id, Value::of(named));
  const size_t taken = std::min(node.parameters.size(), arguments.positional.size());
  if (node.uses_varargs) {
    List* rest = arena_.list(List::Type::tuple);
    arena_.charge((arguments.positional.size() - taken) * sizeof(Value));
    rest->items.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken),
                       arguments.positional.end());
    bind(program_.varargs_id, Value::of(rest));
  } else if (arguments.positional.size() > taken) {
    fail(ErrorKind::model, "macro '{}' takes at most {} arguments, not {}", node.name, node.parameters.size(),
         arguments.positional.size());
  }
}

}  // namespace retro::text::jinja
