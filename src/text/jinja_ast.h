// The tree of a parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace retro::text::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind : uint8_t {
  constant,     // value
  name,         // name, id
  list,         // items
  tuple,        // items
  dict,         // items: key, value, key, value …
  attribute,    // items[0].name
  item,         // items[0][items[1]]
  slice,        // items[0][items[1]:items[2]:items[3]], null where left out
  call,         // items[0](arguments)
  filter,       // items[0]|name(arguments); items[0] is null in `{% filter %}` and `{% set | … %}`
  test,         // items[0] is name(arguments)
  negative,     // -items[0]
  positive,     // +items[0]
  logical_not,  // not items[0]
  logical_and,  // items[0] and items[1]
  logical_or,   // items[0] or items[1]
  binary,       // items[0] op items[1]
  concat,       // items joined by ~
  compare,      // items[0] ops[0] items[1] ops[1] items[2] …
  conditional,  // items[0] if items[1] else items[2] (null: undefined)
};

enum class Op : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

struct Expr {
  ExprKind kind = ExprKind::constant;
  int line = 1;
  int depth = 1;  ///< of the tree below, bounded by the parser
  Op op = Op::add;
  uint32_t id = 0;  ///< of a name, in the template's table
  std::string name;
  Value value;
  std::vector<ExprPtr> items;
  std::vector<Op> ops;
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;         ///< *args
  ExprPtr double_star;  ///< **kwargs
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind : uint8_t {
  text,          // text
  output,        // exprs[0]
  branch,        // exprs[i] → bodies[i]; one more body is the else
  loop,          // for target in exprs[0] if exprs[1]: bodies[0], else bodies[1]
  set,           // target = exprs[0]
  set_block,     // target = bodies[0] through the filter exprs[0]
  macro,         // name, parameters, bodies[0]
  call_block,    // exprs[0] is a call, bodies[0] its caller
  filter_block,  // bodies[0] through exprs[0]
  with,          // targets = exprs, bodies[0]
  scope,         // bodies[0] in a scope of its own
  break_loop,
  continue_loop,
};

/// What an assignment writes: a name, a namespace's field (`name.field`), or a tuple of targets.
struct Target {
  uint32_t id = 0;
  std::string name;
  std::string field;
  std::vector<Target> parts;
};

struct Parameter {
  uint32_t id = 0;
  std::string name;
  ExprPtr fallback;
};

struct Stmt {
  StmtKind kind = StmtKind::text;
  int line = 1;
  const Str* text = nullptr;
  std::string name;
  uint32_t id = 0;
  std::vector<Target> targets;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;
  std::vector<Parameter> parameters;
  bool has_else = false;
  bool recursive = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

/// A parsed template with its constants and the names it uses.
struct Program {
  Arena constants;
  std::vector<std::string> names;
  Body body;

  /// The index of a name that the interpreter itself binds.
  uint32_t loop_id = 0;
  uint32_t caller_id = 0;
  uint32_t varargs_id = 0;
  uint32_t kwargs_id = 0;
};

}  // namespace retro::text::jinja
