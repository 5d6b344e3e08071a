#include "text/jinja_functions.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "text/jinja_operators.h"

namespace retro::text::jinja {

namespace {

/// The sandbox of jinja2 allows ranges up to this length.
constexpr int64_t kMaxRange = 100000;

struct Macro : Object {
  Macro(const Stmt& macro, Scope* defined_in) : node(&macro), scope(defined_in) {}
  std::string describe() const override { return "macro '" + node->name + "'"; }
  Value call(const Arguments& arguments, Interpreter& interpreter) override {
    return interpreter.call_macro(*node, scope, arguments);
  }
  Value attribute(std::string_view name, Interpreter& interpreter) override {
    Arena& arena = interpreter.arena();
    if (name == "name") return arena.string(node->name);
    if (name == "catch_kwargs") return Value::of(node->uses_kwargs);
    if (name == "catch_varargs") return Value::of(node->uses_varargs);
    if (name == "caller") return Value::of(node->uses_caller);
    if (name != "arguments") return {};
    List* names = arena.list(List::Type::tuple);
    for (const Parameter& parameter : node->parameters) names->items.push_back(arena.string(parameter.name));
    return Value::of(names);
  }

  const Stmt* node;
  Scope* scope;
};

struct BoundMethod : Object {
  BoundMethod(std::string_view method_name, const Value& receiver, Method function)
      : name(method_name), self(receiver), method(function) {}
  std::string describe() const override { return "method '" + name + "'"; }
  Value call(const Arguments& arguments, Interpreter& interpreter) override {
    return method(self, arguments, interpreter);
  }

  std::string name;
  Value self;
  Method method;
};

/// A separator that is empty the first time.
struct Joiner : Object {
  explicit Joiner(const Value& text) : separator(text) {}
  std::string describe() const override { return "joiner"; }
  Value call(const Arguments& arguments, Interpreter& interpreter) override {
    Bound("joiner", arguments, {});
    const bool first = !used;
    used = true;
    return first ? interpreter.arena().string("") : separator;
  }

  Value separator;
  bool used = false;
};

/// Values in turn: `next()`, `reset()`, `current`.
struct Cycler : Object {
  std::string describe() const override { return "cycler"; }
  Value call(const Arguments&, Interpreter&) override {
    fail(ErrorKind::model, "a cycler is advanced by next()");
  }
  Value attribute(std::string_view name, Interpreter& interpreter) override;

  std::vector<Value> items;
  size_t at = 0;
};

struct CyclerMethod : Object {
  CyclerMethod(Cycler* owner, bool to_start) : cycler(owner), reset(to_start) {}
  std::string describe() const override { return "cycler method"; }
  Value call(const Arguments& arguments, Interpreter&) override {
    Bound("cycler", arguments, {});
    const Value current = cycler->items[cycler->at];
    cycler->at = reset ? 0 : (cycler->at + 1) % cycler->items.size();
    return reset ? Value::none() : current;
  }

  Cycler* cycler;
  bool reset;
};

Value Cycler::attribute(std::string_view name, Interpreter& interpreter) {
  if (name == "current") return items[at];
  if (name != "next" && name != "reset") return {};
  return Value::of(interpreter.arena().adopt(std::make_unique<CyclerMethod>(this, name == "reset")));
}

using Function = Value (*)(const Arguments& arguments, Interpreter& interpreter);

struct FunctionObject : Object {
  FunctionObject(std::string_view function_name, Function call_function)
      : name(function_name), function(call_function) {}
  std::string describe() const override { return "function '" + std::string(name) + "'"; }
  Value call(const Arguments& arguments, Interpreter& interpreter) override {
    return function(arguments, interpreter);
  }

  std::string_view name;
  Function function;
};

Value call_range(const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("range", arguments, {"start", "stop", "step"});
  int64_t begin = 0;
  int64_t end = to_integer(bound.at(0), "range");
  if (bound.has(1)) {
    begin = end;
    end = to_integer(bound.at(1), "range");
  }
  const int64_t step = bound.integer(2, 1);
  if (step == 0) fail(ErrorKind::model, "range's step is zero");
  constexpr int64_t kFar = int64_t{1} << 60;
  if (std::max({begin, end, step}) > kFar || std::min({begin, end, step}) < -kFar) {
    fail(ErrorKind::model, "range goes too far");
  }
  const int64_t span = step > 0 ? end - begin : begin - end;
  const int64_t stride = step > 0 ? step : -step;
  const int64_t count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (count > kMaxRange) fail(ErrorKind::model, "range is longer than {}", kMaxRange);
  Arena& arena = interpreter.arena();
  arena.step(static_cast<uint64_t>(count) / 8);
  arena.charge(static_cast<uint64_t>(count) * sizeof(Value));
  List* list = arena.list(List::Type::range);
  list->items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) list->items.push_back(Value::of(begin + i * step));
  return Value::of(list);
}

/// The dict that `dict(…)` and `namespace(…)` make of their arguments.
Dict* dict_of(std::string_view callee, const Arguments& arguments, Arena& arena) {
  Dict* dict = arena.dict();
  if (arguments.positional.size() > 1)
    fail(ErrorKind::model, "'{}' takes at most one positional argument", callee);
  for (const Value& source : arguments.positional) {
    require_defined(source);
    if (source.is(Kind::dict) || source.is(Kind::space)) {
      arena.charge(source.dict->items.size() * 2 * sizeof(Value));
      arena.step(source.dict->items.size());
      *dict = *source.dict;
      continue;
    }
    for (const Value& pair : iterate(source, arena)->items) {
      const List* two = iterate(pair, arena);
      if (two->items.size() != 2) fail(ErrorKind::model, "'{}' takes pairs of key and value", callee);
      arena.charge(2 * sizeof(Value));
      dict->set(two->items[0], two->items[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    arena.charge(2 * sizeof(Value));
    dict->set(arena.string(name), value);
  }
  return dict;
}

Value call_dict(const Arguments& arguments, Interpreter& interpreter) {
  return Value::of(dict_of("dict", arguments, interpreter.arena()));
}

Value call_namespace(const Arguments& arguments, Interpreter& interpreter) {
  return Value::of(dict_of("namespace", arguments, interpreter.arena()), Kind::space);
}

Value call_raise_exception(const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("raise_exception", arguments, {"message"});
  const Str* message = to_str(bound.at(0), interpreter.arena());
  throw Refusal(ErrorKind::data,
                fmt::format("the model's chat template refuses this conversation: {}", message->bytes));
}

Value call_strftime_now(const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("strftime_now", arguments, {"format"});
  const std::string format(to_string(bound.at(0), "strftime_now").bytes);
  const std::time_t now = interpreter.now();
  std::tm civil{};
  gmtime_r(&now, &civil);
  std::array<char, 512> buffer{};
  const size_t size =
      format.empty() ? 0 : std::strftime(buffer.data(), buffer.size(), format.c_str(), &civil);
  return interpreter.arena().string({buffer.data(), size});
}

Value call_joiner(const Arguments& arguments, Interpreter& interpreter) {
  const Bound bound("joiner", arguments, {"sep"});
  Arena& arena = interpreter.arena();
  return Value::of(arena.adopt(std::make_unique<Joiner>(bound.has(0) ? bound.at(0) : arena.string(", "))));
}

Value call_cycler(const Arguments& arguments, Interpreter& interpreter) {
  if (arguments.positional.empty() || !arguments.named.empty())
    fail(ErrorKind::model, "'cycler' takes its values");
  auto cycler = std::make_unique<Cycler>();
  cycler->items = arguments.positional;
  return Value::of(interpreter.arena().adopt(std::move(cycler)));
}

struct Builtin {
  std::string_view name;
  Function function;
};
constexpr std::array kBuiltins = {
    Builtin{"range", call_range},
    Builtin{"dict", call_dict},
    Builtin{"namespace", call_namespace},
    Builtin{"raise_exception", call_raise_exception},
    Builtin{"strftime_now", call_strftime_now},
    Builtin{"joiner", call_joiner},
    Builtin{"cycler", call_cycler},
};

}  // namespace

std::optional<Value> builtin(std::string_view name, Arena& arena) {
  for (const Builtin& each : kBuiltins) {
    if (each.name == name)
      return Value::of(arena.adopt(std::make_unique<FunctionObject>(name, each.function)));
  }
  return std::nullopt;
}

std::unique_ptr<Object> make_macro(const Stmt& node, Scope* scope) {
  return std::make_unique<Macro>(node, scope);
}

std::unique_ptr<Object> bind_method(std::string_view name, const Value& self, Method method) {
  return std::make_unique<BoundMethod>(name, self, method);
}

LoopObject* make_loop(const Stmt& node, Scope* scope, const List* items, int depth, Arena& arena) {
  auto loop = std::make_unique<LoopObject>();
  loop->node = &node;
  loop->scope = scope;
  loop->items = items;
  loop->depth = depth;
  return static_cast<LoopObject*>(arena.adopt(std::move(loop)));
}

Value LoopObject::call(const Arguments& arguments, Interpreter& interpreter) {
  if (!node->recursive) fail(ErrorKind::model, "'loop(…)' needs a loop that is marked 'recursive'");
  const Bound bound("loop", arguments, {"iterable"});
  return interpreter.call_loop(*node, scope, bound.at(0), depth + 1);
}

namespace {

Value cycle(const Value& self, const Arguments& arguments, Interpreter&) {
  const auto& loop = static_cast<const LoopObject&>(*self.object);
  if (arguments.positional.empty()) fail(ErrorKind::model, "'loop.cycle' takes its values");
  return arguments.positional[loop.index % arguments.positional.size()];
}

Value changed(const Value& self, const Arguments& arguments, Interpreter&) {
  auto& loop = static_cast<LoopObject&>(*self.object);
  bool same = loop.changed_before && loop.last_changed.size() == arguments.positional.size();
  for (size_t i = 0; same && i < loop.last_changed.size(); ++i) {
    same = equal(loop.last_changed[i], arguments.positional[i]);
  }
  loop.changed_before = true;
  loop.last_changed = arguments.positional;
  return Value::of(!same);
}

}  // namespace

Value LoopObject::attribute(std::string_view name, Interpreter& interpreter) {
  const auto count = static_cast<int64_t>(items->items.size());
  const auto at = static_cast<int64_t>(index);
  if (name == "index") return Value::of(at + 1);
  if (name == "index0") return Value::of(at);
  if (name == "first") return Value::of(at == 0);
  if (name == "last") return Value::of(at + 1 == count);
  if (name == "length") return Value::of(count);
  if (name == "revindex") return Value::of(count - at);
  if (name == "revindex0") return Value::of(count - at - 1);
  if (name == "depth") return Value::of(int64_t{depth});
  if (name == "depth0") return Value::of(int64_t{depth - 1});
  if (name == "previtem")
    return at == 0 ? interpreter.arena().undefined("loop.previtem") : items->items[index - 1];
  if (name == "nextitem") {
    return at + 1 == count ? interpreter.arena().undefined("loop.nextitem") : items->items[index + 1];
  }
  if (name != "cycle" && name != "changed") return {};
  return Value::of(
      interpreter.arena().adopt(bind_method(name, Value::of(this), name == "cycle" ? cycle : changed)));
}

}  // namespace retro::text::jinja
