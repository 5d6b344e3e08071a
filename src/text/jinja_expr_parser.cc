#include "text/jinja_expr_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace retro::text::jinja {

namespace {

constexpr int kMaxDepth = 150;

struct Operator {
  std::string_view text;
  Op op;
};
constexpr std::array kComparisons = {
    Operator{"==", Op::equal},      Operator{"!=", Op::not_equal}, Operator{"<", Op::less},
    Operator{"<=", Op::less_equal}, Operator{">", Op::greater},    Operator{">=", Op::greater_equal},
};
constexpr std::array kProducts = {
    Operator{"*", Op::multiply},
    Operator{"/", Op::divide},
    Operator{"//", Op::floor_divide},
    Operator{"%", Op::modulo},
};

template <size_t N>
const Operator* match(const std::array<Operator, N>& table, const Token& token) {
  for (const Operator& each : table) {
    if (token.is_op(each.text)) return &each;
  }
  return nullptr;
}

}  // namespace

ExprParser::ExprParser(std::vector<Token> tokens, Program& program)
    : program_(program), tokens_(std::move(tokens)) {}

ExprParser::Level::Level(ExprParser& parser) : parser_(parser) {
  if (++parser_.level_ > kMaxDepth) {
    --parser_.level_;
    parser_.error(fmt::format("nested deeper than {} levels", kMaxDepth));
  }
}

void ExprParser::error(const std::string& message) const {
  fail(ErrorKind::model, "chat template, line {}: {}", peek().line, message);
}

const Token& ExprParser::peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

const Token& ExprParser::next() {
  const Token& token = peek();
  ++at_;
  return token;
}

bool ExprParser::accept_op(std::string_view op) {
  if (!peek().is_op(op)) return false;
  ++at_;
  return true;
}

bool ExprParser::accept_name(std::string_view name) {
  if (!peek().is_name(name)) return false;
  ++at_;
  return true;
}

void ExprParser::expect_op(std::string_view op) {
  if (!accept_op(op)) error(fmt::format("expected '{}' before '{}'", op, peek().text));
}

void ExprParser::expect_kind(TokenKind kind, std::string_view what) {
  if (peek().kind != kind) error(fmt::format("expected {} before '{}'", what, peek().text));
  ++at_;
}

std::string ExprParser::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::name) error(fmt::format("expected {} before '{}'", what, peek().text));
  return next().text;
}

uint32_t ExprParser::intern(const std::string& name) {
  const auto [found, added] = ids_.emplace(name, static_cast<uint32_t>(program_.names.size()));
  if (added) program_.names.push_back(name);
  return found->second;
}

ExprPtr ExprParser::make(ExprKind kind, int line) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = line;
  return node;
}

ExprPtr ExprParser::settle(ExprPtr node) const {
  int below = 0;
  const auto look = [&](const ExprPtr& child) {
    if (child) below = std::max(below, child->depth);
  };
  for (const auto& child : node->items) look(child);
  for (const auto& child : node->positional) look(child);
  for (const auto& child : node->named) look(child.second);
  look(node->star);
  look(node->double_star);
  node->depth = below + 1;
  if (node->depth > kMaxDepth) error(fmt::format("an expression is nested deeper than {} levels", kMaxDepth));
  return node;
}

ExprPtr ExprParser::unary(ExprKind kind, int line, ExprPtr item) const {
  ExprPtr node = make(kind, line);
  node->items.push_back(std::move(item));
  return settle(std::move(node));
}

ExprPtr ExprParser::binary(ExprKind kind, int line, ExprPtr left, ExprPtr right, Op op) const {
  ExprPtr node = make(kind, line);
  node->op = op;
  node->items.push_back(std::move(left));
  node->items.push_back(std::move(right));
  return settle(std::move(node));
}

bool ExprParser::at_tuple_end() const {
  const Token& token = peek();
  return token.kind == TokenKind::variable_end || token.kind == TokenKind::block_end || token.is_op(")") ||
         token.is_name("recursive");
}

ExprPtr ExprParser::parse_tuple(bool conditional, bool parenthesized) {
  const int line = peek().line;
  ExprPtr tuple = make(ExprKind::tuple, line);
  bool comma = false;
  while (!at_tuple_end()) {
    tuple->items.push_back(parse_expression(conditional));
    comma = accept_op(",");
    if (!comma) break;
    tuple->kind = ExprKind::tuple;
  }
  if (tuple->items.empty() && !parenthesized) error("expected an expression");
  if (tuple->items.size() == 1 && !comma) return std::move(tuple->items[0]);
  return settle(std::move(tuple));
}

ExprPtr ExprParser::parse_expression(bool conditional) {
  const Level level(*this);
  return conditional ? parse_conditional() : parse_or();
}

ExprPtr ExprParser::parse_conditional() {
  const int line = peek().line;
  ExprPtr value = parse_or();
  while (accept_name("if")) {
    ExprPtr node = make(ExprKind::conditional, line);
    node->items.push_back(std::move(value));
    node->items.push_back(parse_or());
    const Level level(*this);
    node->items.push_back(accept_name("else") ? parse_conditional() : nullptr);
    value = settle(std::move(node));
  }
  return value;
}

ExprPtr ExprParser::parse_or() {
  ExprPtr left = parse_and();
  for (int line = peek().line; accept_name("or"); line = peek().line) {
    left = binary(ExprKind::logical_or, line, std::move(left), parse_and());
  }
  return left;
}

ExprPtr ExprParser::parse_and() {
  ExprPtr left = parse_not();
  for (int line = peek().line; accept_name("and"); line = peek().line) {
    left = binary(ExprKind::logical_and, line, std::move(left), parse_not());
  }
  return left;
}

ExprPtr ExprParser::parse_not() {
  if (!peek().is_name("not")) return parse_compare();
  const Level level(*this);
  const int line = next().line;
  return unary(ExprKind::logical_not, line, parse_not());
}

ExprPtr ExprParser::parse_compare() {
  ExprPtr node = make(ExprKind::compare, peek().line);
  node->items.push_back(parse_sum());
  while (true) {
    if (const Operator* found = match(kComparisons, peek())) {
      next();
      node->ops.push_back(found->op);
    } else if (accept_name("in")) {
      node->ops.push_back(Op::in);
    } else if (peek().is_name("not") && peek(1).is_name("in")) {
      next();
      next();
      node->ops.push_back(Op::not_in);
    } else {
      break;
    }
    node->items.push_back(parse_sum());
  }
  if (node->ops.empty()) return std::move(node->items[0]);
  return settle(std::move(node));
}

ExprPtr ExprParser::parse_sum() {
  ExprPtr left = parse_concat();
  while (peek().is_op("+") || peek().is_op("-")) {
    const int line = peek().line;
    const Op op = next().text == "+" ? Op::add : Op::subtract;
    left = binary(ExprKind::binary, line, std::move(left), parse_concat(), op);
  }
  return left;
}

ExprPtr ExprParser::parse_concat() {
  ExprPtr node = make(ExprKind::concat, peek().line);
  do {
    node->items.push_back(parse_product());
  } while (accept_op("~"));
  if (node->items.size() == 1) return std::move(node->items[0]);
  return settle(std::move(node));
}

ExprPtr ExprParser::parse_product() {
  ExprPtr left = parse_power();
  while (const Operator* found = match(kProducts, peek())) {
    const int line = next().line;
    left = binary(ExprKind::binary, line, std::move(left), parse_power(), found->op);
  }
  return left;
}

ExprPtr ExprParser::parse_power() {
  ExprPtr left = parse_unary(true);
  for (int line = peek().line; accept_op("**"); line = peek().line) {
    left = binary(ExprKind::binary, line, std::move(left), parse_unary(true), Op::power);
  }
  return left;
}

ExprPtr ExprParser::parse_unary(bool with_filters) {
  ExprPtr node;
  const int line = peek().line;
  if (peek().is_op("-") || peek().is_op("+")) {
    const Level level(*this);
    const ExprKind kind = next().text == "-" ? ExprKind::negative : ExprKind::positive;
    node = unary(kind, line, parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters(std::move(node)) : std::move(node);
}

ExprPtr ExprParser::parse_name() {
  const Token& token = next();
  ExprPtr node = make(ExprKind::constant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->value = Value::of(true);
  } else if (token.text == "false" || token.text == "False") {
    node->value = Value::of(false);
  } else if (token.text == "none" || token.text == "None") {
    node->value = Value::none();
  } else {
    node->kind = ExprKind::name;
    node->name = token.text;
    node->id = intern(token.text);
    for (MacroUse& use : macro_use_) {
      use.varargs |= token.text == "varargs";
      use.kwargs |= token.text == "kwargs";
      use.caller |= token.text == "caller";
    }
  }
  return node;
}

ExprPtr ExprParser::parse_number() {
  const Token& token = next();
  ExprPtr node = make(ExprKind::constant, token.line);
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  std::from_chars_result result{};
  if (token.kind == TokenKind::real) {
    double value = 0;
    result = std::from_chars(begin, end, value);
    node->value = Value::of(value);
  } else {
    int base = 10;
    if (token.text.size() > 2 && token.text[0] == '0') {
      const char mark = static_cast<char>(token.text[1] | 0x20);
      base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    }
    int64_t value = 0;
    result = std::from_chars(base == 10 ? begin : begin + 2, end, value, base);
    node->value = Value::of(value);
  }
  if (result.ec != std::errc() || result.ptr != end)
    error(fmt::format("'{}' is no number we can hold", token.text));
  return node;
}

ExprPtr ExprParser::parse_primary() {
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::name:
      return parse_name();
    case TokenKind::integer:
    case TokenKind::real:
      return parse_number();
    case TokenKind::string: {
      ExprPtr node = make(ExprKind::constant, token.line);
      std::string text;
      while (peek().kind == TokenKind::string) text += next().text;
      node->value = program_.constants.string(text);
      return node;
    }
    case TokenKind::op:
      if (token.text == "[") return parse_list();
      if (token.text == "{") return parse_dict();
      if (accept_op("(")) {
        ExprPtr inner = parse_tuple(true, true);
        expect_op(")");
        return inner;
      }
      break;
    default:
      break;
  }
  error(token.kind == TokenKind::end ? "the template ends inside an expression"
                                     : fmt::format("unexpected '{}'", token.text));
}

ExprPtr ExprParser::parse_list() {
  ExprPtr node = make(ExprKind::list, next().line);
  while (!peek().is_op("]")) {
    if (!node->items.empty()) {
      expect_op(",");
      if (peek().is_op("]")) break;
    }
    node->items.push_back(parse_expression());
  }
  expect_op("]");
  return settle(std::move(node));
}

ExprPtr ExprParser::parse_dict() {
  ExprPtr node = make(ExprKind::dict, next().line);
  while (!peek().is_op("}")) {
    if (!node->items.empty()) {
      expect_op(",");
      if (peek().is_op("}")) break;
    }
    node->items.push_back(parse_expression());
    expect_op(":");
    node->items.push_back(parse_expression());
  }
  expect_op("}");
  return settle(std::move(node));
}

}  // namespace retro::text::jinja
