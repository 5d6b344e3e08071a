// Statements.
#include "text/jinja_eval.h"

#include <algorithm>

#include "base/error.h"
#include "text/jinja_functions.h"
#include "text/jinja_operators.h"

namespace retro::text::jinja {

DepthGuard::DepthGuard(Interpreter& interpreter) : interpreter_(interpreter) {
  if (++interpreter_.depth_ > interpreter_.arena_.limits().depth) {
    --interpreter_.depth_;
    fail(ErrorKind::model,
         "the template nests calls deeper than {} levels; does a macro call itself without end?",
         interpreter_.arena_.limits().depth);
  }
}

/// A scope of its own while it lives.
class ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* parent)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    if (interpreter.free_scopes_.empty()) {
      interpreter.arena_.charge(sizeof(Scope));
      own_ = &interpreter.scopes_.emplace_back();
    } else {
      own_ = interpreter.free_scopes_.back();
      interpreter.free_scopes_.pop_back();
    }
    own_->parent = parent;
    interpreter.scope_ = own_;
  }
  ~ScopeGuard() {
    interpreter_.scope_ = outer_;
    if (own_->captured) return;
    own_->values.clear();
    interpreter_.free_scopes_.push_back(own_);
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* outer_;
  Scope* own_ = nullptr;
};

/// Collects what is written while it lives.
class Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(interpreter.out_), text_(interpreter.arena_) {
    interpreter.out_ = &text_;
  }
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Value value() { return Value::of(text_.finish()); }

 private:
  Interpreter& interpreter_;
  TextBuilder* outer_;
  TextBuilder text_;
};

Interpreter::Interpreter(const Program& program, Arena& arena, int64_t now)
    : program_(program), arena_(arena), now_(now), globals_(program.names.size()) {
  for (size_t i = 0; i < program.names.size(); ++i) globals_[i] = builtin(program.names[i], arena);
}

void Interpreter::set_global(std::string_view name, const Value& value) {
  const auto found = std::find(program_.names.begin(), program_.names.end(), name);
  if (found != program_.names.end()) globals_[static_cast<size_t>(found - program_.names.begin())] = value;
}

Rendered Interpreter::run() {
  TextBuilder out(arena_);
  out_ = &out;
  try {
    execute(program_.body);
  } catch (const Refusal&) {
    throw;
  } catch (const Error& error) {
    throw error.within(fmt::format("chat template, line {}", line_));
  }
  return out.take();
}

Scope* Interpreter::capture_scope() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent)
    scope->captured = true;
  return scope_;
}

void Interpreter::bind(uint32_t id, const Value& value) {
  if (scope_ == nullptr) {
    globals_[id] = value;
    return;
  }
  for (auto& [name, old] : scope_->values) {
    if (name == id) {
      old = value;
      return;
    }
  }
  // A scope that is used again has the room already.
  if (scope_->values.size() == scope_->values.capacity()) arena_.charge(sizeof(scope_->values[0]));
  scope_->values.emplace_back(id, value);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const List* items = iterate(value, arena_);
    if (items->items.size() != target.parts.size()) {
      fail(ErrorKind::model, "{} values are unpacked into {} names", items->items.size(),
           target.parts.size());
    }
    for (size_t i = 0; i < target.parts.size(); ++i) assign(target.parts[i], items->items[i]);
    return;
  }
  if (target.field.empty()) {
    bind(target.id, value);
    return;
  }
  Expr name;
  name.id = target.id;
  const Value space = evaluate_name(name);
  if (!space.is(Kind::space)) {
    fail(ErrorKind::model, "'{}.{}' is assigned to, but '{}' is no namespace", target.name, target.field,
         target.name);
  }
  arena_.charge(2 * sizeof(Value));
  space.dict->set(Value::of(arena_.refer(target.field)), value);
}

void Interpreter::write(const Value& value) {
  append_str(value, *out_);
}

Flow Interpreter::execute(const Body& body) {
  const DepthGuard guard(*this);
  for (const auto& node : body) {
    const Flow flow = execute(*node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Flow Interpreter::execute(const Stmt& node) {
  arena_.step();
  line_ = node.line;
  switch (node.kind) {
    case StmtKind::text:
      out_->append(*node.text);
      return Flow::normal;
    case StmtKind::output:
      write(evaluate(*node.exprs[0]));
      return Flow::normal;
    case StmtKind::branch:
      return execute_branch(node);
    case StmtKind::loop:
      return execute_loop(node, evaluate(*node.exprs[0]), 1);
    case StmtKind::set:
      execute_set(node);
      return Flow::normal;
    case StmtKind::set_block:
      execute_set_block(node);
      return Flow::normal;
    case StmtKind::macro:
      bind(node.id, Value::of(arena_.adopt(make_macro(node, capture_scope()))));
      return Flow::normal;
    case StmtKind::call_block:
      execute_call_block(node);
      return Flow::normal;
    case StmtKind::filter_block: {
      const Value text = captured(node.bodies[0], scope_);
      write(evaluate_filter(*node.exprs[0], &text));
      return Flow::normal;
    }
    case StmtKind::with:
      return execute_with(node);
    case StmtKind::scope: {
      const ScopeGuard scope(*this, scope_);
      return execute(node.bodies[0]);
    }
    case StmtKind::break_loop:
      return Flow::break_loop;
    case StmtKind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::normal;
}

Flow Interpreter::execute_branch(const Stmt& node) {
  for (size_t i = 0; i < node.exprs.size(); ++i) {
    if (truthy(evaluate(*node.exprs[i]))) return execute(node.bodies[i]);
  }
  return node.has_else ? execute(node.bodies.back()) : Flow::normal;
}

void Interpreter::execute_set(const Stmt& node) {
  assign(node.targets[0], evaluate(*node.exprs[0]));
}

Value Interpreter::captured(const Body& body, Scope* parent) {
  Capture capture(*this);
  const ScopeGuard scope(*this, parent);
  execute(body);
  return capture.value();
}

void Interpreter::execute_set_block(const Stmt& node) {
  Value text = captured(node.bodies[0], scope_);
  if (node.exprs[0]) text = evaluate_filter(*node.exprs[0], &text);
  assign(node.targets[0], text);
}

void Interpreter::execute_call_block(const Stmt& node) {
  const Expr& call_node = *node.exprs[0];
  const Value callee = evaluate(*call_node.items[0]);
  Arguments arguments = evaluate_arguments(call_node);
  arguments.named.emplace_back("caller", Value::of(arena_.adopt(make_macro(node, capture_scope()))));
  const Value result = call(callee, arguments);
  line_ = node.line;
  write(result);
}

Flow Interpreter::execute_with(const Stmt& node) {
  std::vector<Value> values;
  for (const auto& expr : node.exprs) values.push_back(evaluate(*expr));
  const ScopeGuard scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(node.targets[i], values[i]);
  return execute(node.bodies[0]);
}

List* Interpreter::loop_items(const Stmt& node, const Value& items) {
  List* all = iterate(items, arena_);
  if (!node.exprs[1]) return all;
  List* kept = arena_.list();
  const ScopeGuard scope(*this, scope_);
  for (const Value& item : all->items) {
    arena_.step();
    assign(node.targets[0], item);
    if (!truthy(evaluate(*node.exprs[1]))) continue;
    arena_.charge(sizeof(Value));
    kept->items.push_back(item);
  }
  return kept;
}

Flow Interpreter::execute_loop(const Stmt& node, const Value& items, int depth) {
  const List* list = loop_items(node, items);
  if (list->items.empty()) {
    if (!node.has_else) return Flow::normal;
    const ScopeGuard scope(*this, scope_);
    return execute(node.bodies[1]);
  }
  Scope* outer = node.recursive ? capture_scope() : scope_;
  LoopObject* loop = make_loop(node, outer, list, depth, arena_);
  for (size_t i = 0; i < list->items.size(); ++i) {
    arena_.step();
    const ScopeGuard scope(*this, outer);
    loop->index = i;
    bind(program_.loop_id, Value::of(loop));
    assign(node.targets[0], list->items[i]);
    if (execute(node.bodies[0]) == Flow::break_loop) break;
  }
  return Flow::normal;
}

Value Interpreter::call_macro(const Stmt& node, Scope* scope, const Arguments& arguments) {
  const DepthGuard guard(*this);
  const int line = line_;
  Capture capture(*this);
  const ScopeGuard own(*this, scope);
  bind_parameters(node, arguments);
  execute(node.bodies[0]);
  line_ = line;
  return capture.value();
}

Value Interpreter::call_loop(const Stmt& node, Scope* scope, const Value& items, int depth) {
  const DepthGuard guard(*this);
  Capture capture(*this);
  Scope* outer = scope_;
  scope_ = scope;
  execute_loop(node, items, depth);
  scope_ = outer;
  return capture.value();
}

}  // namespace retro::text::jinja
