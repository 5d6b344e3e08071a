// Jinja source to tokens, with jinja2's whitespace rules (trim_blocks, lstrip_blocks, one last newline
// dropped).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retro::text::jinja {

enum class TokenKind : uint8_t {
  data,  ///< text between tags
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  ///< a string's value, unescaped; a number's digits; an operator; a name
  int line = 1;

  bool is_op(std::string_view op) const { return kind == TokenKind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

/// All tokens of `source`, `end` last. Throws Error(model) naming the line.
std::vector<Token> tokenize_template(std::string_view source);

}  // namespace retro::text::jinja
