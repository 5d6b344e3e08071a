// What follows an operand: attributes, subscripts, calls, filters, tests.
#include <fmt/format.h>

#include "text/jinja_expr_parser.h"

namespace retro::text::jinja {

ExprPtr ExprParser::parse_postfix(ExprPtr subject) {
  while (true) {
    if (peek().is_op(".") || peek().is_op("[")) {
      subject = parse_subscript(std::move(subject));
    } else if (peek().is_op("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExprPtr ExprParser::parse_filters(ExprPtr subject) {
  while (true) {
    if (accept_op("|")) {
      subject = parse_filter(std::move(subject));
    } else if (peek().is_name("is")) {
      subject = parse_test(std::move(subject));
    } else if (peek().is_op("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExprPtr ExprParser::parse_filter(ExprPtr subject) {
  ExprPtr node = make(ExprKind::filter, peek().line);
  node->name = expect_name("a filter's name");
  while (accept_op(".")) node->name += "." + expect_name("a filter's name");
  node->items.push_back(std::move(subject));
  if (accept_op("(")) parse_arguments(*node);
  return settle(std::move(node));
}

ExprPtr ExprParser::parse_test(ExprPtr subject) {
  ExprPtr node = make(ExprKind::test, next().line);
  const bool negated = accept_name("not");
  node->name = expect_name("a test's name");
  while (accept_op(".")) node->name += "." + expect_name("a test's name");
  node->items.push_back(std::move(subject));
  const Token& token = peek();
  if (accept_op("(")) {
    parse_arguments(*node);
  } else {
    const bool word = token.kind == TokenKind::name && token.text != "else" && token.text != "or" &&
                      token.text != "and" && token.text != "if";
    if (token.is_name("is")) error("tests cannot be chained with 'is'");
    if (word || token.kind == TokenKind::string || token.kind == TokenKind::integer ||
        token.kind == TokenKind::real || token.is_op("[") || token.is_op("{")) {
      node->positional.push_back(parse_postfix(parse_primary()));
    }
  }
  const int line = node->line;
  node = settle(std::move(node));
  return negated ? unary(ExprKind::logical_not, line, std::move(node)) : std::move(node);
}

ExprPtr ExprParser::parse_subscript(ExprPtr subject) {
  const int line = peek().line;
  if (accept_op(".")) {
    if (peek().kind == TokenKind::integer) {
      ExprPtr index = parse_number();
      return binary(ExprKind::item, line, std::move(subject), std::move(index));
    }
    ExprPtr node = unary(ExprKind::attribute, line, std::move(subject));
    node->name = expect_name("an attribute's name");
    return node;
  }
  expect_op("[");
  ExprPtr node = parse_subscripted(std::move(subject), line);
  if (peek().is_op(",")) error("a subscript takes one index or slice");
  expect_op("]");
  return node;
}

ExprPtr ExprParser::parse_subscripted(ExprPtr subject, int line) {
  ExprPtr first;
  if (!peek().is_op(":")) {
    first = parse_expression();
    if (!peek().is_op(":")) return binary(ExprKind::item, line, std::move(subject), std::move(first));
  }
  ExprPtr node = make(ExprKind::slice, line);
  node->items.push_back(std::move(subject));
  node->items.push_back(std::move(first));
  const auto part = [&]() -> ExprPtr {
    if (!accept_op(":")) return nullptr;
    if (peek().is_op(":") || peek().is_op("]") || peek().is_op(",")) return nullptr;
    return parse_expression();
  };
  node->items.push_back(part());
  node->items.push_back(part());
  return settle(std::move(node));
}

ExprPtr ExprParser::parse_call(ExprPtr subject) {
  ExprPtr node = make(ExprKind::call, peek().line);
  node->items.push_back(std::move(subject));
  expect_op("(");
  parse_arguments(*node);
  return settle(std::move(node));
}

void ExprParser::parse_arguments(Expr& into) {
  bool first = true;
  while (!peek().is_op(")")) {
    if (!first) {
      expect_op(",");
      if (peek().is_op(")")) break;
    }
    first = false;
    if (accept_op("**")) {
      if (into.double_star) error("a call takes one **argument");
      into.double_star = parse_expression();
    } else if (accept_op("*")) {
      if (into.star || into.double_star) error("a call takes one *argument, before any **argument");
      into.star = parse_expression();
    } else if (peek().kind == TokenKind::name && peek(1).is_op("=")) {
      if (into.double_star) error("a named argument stands behind a **argument");
      std::string name = next().text;
      next();
      into.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (into.star || into.double_star || !into.named.empty()) {
        error("a positional argument stands behind a named one");
      }
      into.positional.push_back(parse_expression());
    }
  }
  expect_op(")");
}

}  // namespace retro::text::jinja
