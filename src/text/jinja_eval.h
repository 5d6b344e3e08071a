// Runs a parsed template within the limits of an arena.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace retro::text::jinja {

/// Names bound in one block; a lookup goes on in the parent. The outermost scope is the interpreter's
/// globals.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<uint32_t, Value>> values;
  bool captured = false;  ///< a macro refers to it, so it outlives its block
};

enum class Flow : uint8_t { normal, break_loop, continue_loop };

class Interpreter {
 public:
  /// `now` is the civil time that strftime_now sees, in seconds since 1970-01-01 00:00.
  Interpreter(const Program& program, Arena& arena, int64_t now);

  void set_global(std::string_view name, const Value& value);
  /// Throws Error(model) with the template's line, or Error(data) where the template itself raises.
  Rendered run();

  Arena& arena() { return arena_; }
  int64_t now() const { return now_; }

  Value call(const Value& callee, const Arguments& arguments);
  /// `object.name`: methods before keys. Undefined where there is neither.
  Value attribute(const Value& object, std::string_view name);
  /// `object[key]`: keys before methods.
  Value item(const Value& object, const Value& key);
  Value filter(std::string_view name, const Value& subject, const Arguments& arguments);
  bool test(std::string_view name, const Value& subject, const Arguments& arguments);

  /// What a macro of `node` defined in `scope` writes for these arguments.
  Value call_macro(const Stmt& node, Scope* scope, const Arguments& arguments);
  /// What `loop(items)` writes inside the recursive loop `node`.
  Value call_loop(const Stmt& node, Scope* scope, const Value& items, int depth);

 private:
  friend class DepthGuard;
  friend class ScopeGuard;
  friend class Capture;

  // Statements.
  Flow execute(const Body& body);
  Flow execute(const Stmt& node);
  Flow execute_branch(const Stmt& node);
  Flow execute_loop(const Stmt& node, const Value& items, int depth);
  List* loop_items(const Stmt& node, const Value& items);
  void execute_set(const Stmt& node);
  void execute_set_block(const Stmt& node);
  void execute_call_block(const Stmt& node);
  Flow execute_with(const Stmt& node);
  void assign(const Target& target, const Value& value);
  void bind(uint32_t id, const Value& value);
  void bind_parameters(const Stmt& node, const Arguments& arguments);
  void bind_rest(const Stmt& node, const Arguments& arguments, const std::vector<bool>& used);
  Scope* capture_scope();
  /// What `body` writes in a scope of its own.
  Value captured(const Body& body, Scope* parent);
  void write(const Value& value);

  // Expressions.
  Value evaluate(const Expr& node);
  Value evaluate_name(const Expr& node);
  Value evaluate_container(const Expr& node);
  Value evaluate_dict(const Expr& node);
  Value evaluate_slice(const Expr& node);
  Value evaluate_call(const Expr& node);
  Value evaluate_filter(const Expr& node, const Value* subject);
  Value evaluate_concat(const Expr& node);
  Value evaluate_compare(const Expr& node);
  Value evaluate_conditional(const Expr& node);
  Value evaluate_two(const Expr& node);
  Arguments evaluate_arguments(const Expr& node);

  const Program& program_;
  Arena& arena_;
  int64_t now_;
  int line_ = 1;
  int depth_ = 0;
  std::vector<std::optional<Value>> globals_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  TextBuilder* out_ = nullptr;
};

/// Counts one level of evaluation while it lives; throws Error(model) past the limit.
class DepthGuard {
 public:
  explicit DepthGuard(Interpreter& interpreter);
  ~DepthGuard() { --interpreter_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Interpreter& interpreter_;
};

/// `range`, `dict`, `namespace`, `raise_exception` …; nothing where the name is no built-in.
std::optional<Value> builtin(std::string_view name, Arena& arena);

}  // namespace retro::text::jinja
