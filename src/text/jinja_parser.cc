#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <initializer_list>

#include "text/jinja_expr_parser.h"

namespace retro::text::jinja {

namespace {

class Parser : public ExprParser {
 public:
  Parser(std::vector<Token> tokens, Program& program) : ExprParser(std::move(tokens), program) {
    program.loop_id = intern("loop");
    program.caller_id = intern("caller");
    program.varargs_id = intern("varargs");
    program.kwargs_id = intern("kwargs");
  }

  Body parse() { return parse_body({}); }

 private:
  using StmtPtr = std::unique_ptr<Stmt>;

  static StmtPtr make(StmtKind kind, int line) {
    auto node = std::make_unique<Stmt>();
    node->kind = kind;
    node->line = line;
    return node;
  }

  /// Statements up to one of `ends`, whose name is left as the next token; with no ends, up to the end of
  /// all.
  Body parse_body(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Body body;
    while (true) {
      const int line = peek().line;
      switch (peek().kind) {
        case TokenKind::data: {
          StmtPtr text = make(StmtKind::text, line);
          text->text = program_.constants.copy(next().text);
          body.push_back(std::move(text));
          break;
        }
        case TokenKind::variable_begin: {
          next();
          StmtPtr output = make(StmtKind::output, line);
          output->exprs.push_back(parse_tuple());
          expect_kind(TokenKind::variable_end, "'}}'");
          body.push_back(std::move(output));
          break;
        }
        case TokenKind::block_begin: {
          next();
          for (const std::string_view end : ends) {
            if (peek().is_name(end)) return body;
          }
          body.push_back(parse_statement());
          break;
        }
        default:
          if (ends.size() == 0) return body;
          error(fmt::format("the template ends before '{}'", *(ends.end() - 1)));
      }
    }
  }

  void close_tag() { expect_kind(TokenKind::block_end, "'%}'"); }

  /// The body of a block and its end tag.
  Body parse_block(std::string_view end) {
    close_tag();
    Body body = parse_body({end});
    next();
    close_tag();
    return body;
  }

  StmtPtr parse_statement() {
    const int line = peek().line;
    const std::string tag = expect_name("a tag's name");
    if (tag == "if") return parse_if(line);
    if (tag == "for") return parse_for(line);
    if (tag == "set") return parse_set(line);
    if (tag == "macro") return parse_macro(line);
    if (tag == "call") return parse_call_block(line);
    if (tag == "filter") {
      StmtPtr node = make(StmtKind::filter_block, line);
      node->exprs.push_back(parse_bare_filters());
      node->bodies.push_back(parse_block("endfilter"));
      return node;
    }
    if (tag == "with") return parse_with(line);
    if (tag == "generation") {
      StmtPtr node = make(StmtKind::scope, line);
      node->bodies.push_back(parse_block("endgeneration"));
      return node;
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) error(fmt::format("'{}' outside of a loop", tag));
      close_tag();
      return make(tag == "break" ? StmtKind::break_loop : StmtKind::continue_loop, line);
    }
    error(fmt::format("the tag '{}' is unknown here", tag));
  }

  StmtPtr parse_if(int line) {
    StmtPtr node = make(StmtKind::branch, line);
    while (true) {
      node->exprs.push_back(parse_tuple(false));
      close_tag();
      node->bodies.push_back(parse_body({"elif", "else", "endif"}));
      const std::string tag = next().text;
      if (tag == "elif") continue;
      if (tag == "else") {
        node->has_else = true;
        node->bodies.push_back(parse_block("endif"));
      } else {
        close_tag();
      }
      return node;
    }
  }

  StmtPtr parse_for(int line) {
    StmtPtr node = make(StmtKind::loop, line);
    node->targets.push_back(parse_target(false));
    if (!accept_name("in")) error(fmt::format("expected 'in' before '{}'", peek().text));
    node->exprs.push_back(parse_tuple(false));
    node->exprs.push_back(accept_name("if") ? parse_expression() : nullptr);
    node->recursive = accept_name("recursive");
    close_tag();
    ++loops_;
    node->bodies.push_back(parse_body({"else", "endfor"}));
    --loops_;
    if (next().text == "else") {
      node->has_else = true;
      node->bodies.push_back(parse_block("endfor"));
    } else {
      close_tag();
    }
    return node;
  }

  Target parse_one_target(bool fields) {
    const Level level(*this);
    Target target;
    if (accept_op("(")) {
      target = parse_target(false);
      expect_op(")");
      return target;
    }
    target.name = expect_name("a name to assign to");
    if (target.name == "true" || target.name == "false" || target.name == "none" || target.name == "True" ||
        target.name == "False" || target.name == "None") {
      error(fmt::format("'{}' cannot be assigned to", target.name));
    }
    target.id = intern(target.name);
    if (fields && accept_op(".")) target.field = expect_name("a field's name");
    return target;
  }

  Target parse_target(bool fields) {
    Target first = parse_one_target(fields);
    if (!peek().is_op(",")) return first;
    Target tuple;
    tuple.parts.push_back(std::move(first));
    while (accept_op(",")) {
      if (peek().is_op("=") || peek().is_name("in") || peek().is_op(")") ||
          peek().kind == TokenKind::block_end)
        break;
      tuple.parts.push_back(parse_one_target(fields));
    }
    return tuple;
  }

  /// `name(…)|name`, applied to nothing yet.
  ExprPtr parse_bare_filters() {
    ExprPtr filter = parse_filter(nullptr);
    while (accept_op("|")) filter = parse_filter(std::move(filter));
    return filter;
  }

  StmtPtr parse_set(int line) {
    StmtPtr node = make(StmtKind::set, line);
    node->targets.push_back(parse_target(true));
    if (accept_op("=")) {
      node->exprs.push_back(parse_tuple());
      close_tag();
      return node;
    }
    node->kind = StmtKind::set_block;
    node->exprs.push_back(accept_op("|") ? parse_bare_filters() : nullptr);
    node->bodies.push_back(parse_block("endset"));
    return node;
  }

  void parse_parameters(Stmt& node) {
    expect_op("(");
    while (!accept_op(")")) {
      if (!node.parameters.empty()) {
        expect_op(",");
        if (accept_op(")")) return;
      }
      Parameter parameter;
      parameter.name = expect_name("a parameter's name");
      parameter.id = intern(parameter.name);
      if (accept_op("=")) {
        parameter.fallback = parse_expression();
      } else if (!node.parameters.empty() && node.parameters.back().fallback) {
        error("a parameter without a default stands behind one with a default");
      }
      node.parameters.push_back(std::move(parameter));
    }
  }

  void parse_macro_body(Stmt& node, std::string_view end) {
    macro_use_.emplace_back();
    const int loops = loops_;
    loops_ = 0;
    node.bodies.push_back(parse_block(end));
    loops_ = loops;
    node.uses_varargs = macro_use_.back().varargs;
    node.uses_kwargs = macro_use_.back().kwargs;
    node.uses_caller = macro_use_.back().caller;
    macro_use_.pop_back();
  }

  StmtPtr parse_macro(int line) {
    StmtPtr node = make(StmtKind::macro, line);
    node->name = expect_name("a macro's name");
    node->id = intern(node->name);
    parse_parameters(*node);
    parse_macro_body(*node, "endmacro");
    return node;
  }

  StmtPtr parse_call_block(int line) {
    StmtPtr node = make(StmtKind::call_block, line);
    node->name = "caller";
    if (peek().is_op("(")) parse_parameters(*node);
    ExprPtr call = parse_expression();
    if (call->kind != ExprKind::call) error("'call' needs a call");
    node->exprs.push_back(std::move(call));
    parse_macro_body(*node, "endcall");
    return node;
  }

  StmtPtr parse_with(int line) {
    StmtPtr node = make(StmtKind::with, line);
    while (peek().kind != TokenKind::block_end) {
      if (!node->targets.empty()) expect_op(",");
      node->targets.push_back(parse_one_target(false));
      expect_op("=");
      node->exprs.push_back(parse_expression());
    }
    node->bodies.push_back(parse_block("endwith"));
    return node;
  }

  int loops_ = 0;
};

}  // namespace

std::unique_ptr<const Program> parse_template(std::string_view source) {
  auto program = std::make_unique<Program>();
  program->body = Parser(tokenize_template(source), *program).parse();
  return program;
}

}  // namespace retro::text::jinja
