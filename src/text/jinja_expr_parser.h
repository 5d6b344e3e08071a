// The expressions of Jinja, by recursive descent; statements build on it (jinja_parser.cc).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace retro::text::jinja {

class ExprParser {
 public:
  ExprParser(std::vector<Token> tokens, Program& program);

 protected:
  [[noreturn]] void error(const std::string& message) const;
  const Token& peek(size_t ahead = 0) const;
  const Token& next();
  bool accept_op(std::string_view op);
  bool accept_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_kind(TokenKind kind, std::string_view what);
  std::string expect_name(std::string_view what);

  uint32_t intern(const std::string& name);
  /// A comma makes a tuple. Without `conditional`, `a if b` ends before the `if`.
  ExprPtr parse_tuple(bool conditional = true, bool parenthesized = false);
  ExprPtr parse_expression(bool conditional = true);
  /// `|filter(…)` and `is test` and calls that follow; with no `subject`, a filter name comes first, without
  /// a bar.
  ExprPtr parse_filters(ExprPtr subject);
  ExprPtr parse_filter(ExprPtr subject);

  /// What the bodies of the macros around read.
  struct MacroUse {
    bool varargs = false;
    bool kwargs = false;
    bool caller = false;
  };
  std::vector<MacroUse> macro_use_;

  /// Counts a level of nesting while it lives.
  class Level {
   public:
    explicit Level(ExprParser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExprParser& parser_;
  };

  Program& program_;

 private:
  ExprPtr make(ExprKind kind, int line) const;
  ExprPtr settle(ExprPtr node) const;
  ExprPtr unary(ExprKind kind, int line, ExprPtr item) const;
  ExprPtr binary(ExprKind kind, int line, ExprPtr left, ExprPtr right, Op op = Op::add) const;

  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_number();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr subject);
  ExprPtr parse_subscript(ExprPtr subject);
  ExprPtr parse_subscripted(ExprPtr subject, int line);
  ExprPtr parse_call(ExprPtr subject);
  ExprPtr parse_test(ExprPtr subject);
  void parse_arguments(Expr& into);
  bool at_tuple_end() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int level_ = 0;
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace retro::text::jinja
