#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/jinja_unicode.h"

namespace retro::text::jinja {

namespace {

constexpr size_t kMaxSource = 4U << 20;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<uint8_t>(c) >= 0x80;
}

/// jinja2 knows one newline, and drops a last one.
std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string text) : text_(std::move(text)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) root();
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void error(const std::string& message) const {
    fail(ErrorKind::model, "chat template, line {}: {}", line_, message);
  }

  bool looking_at(std::string_view what, size_t at) const {
    return std::string_view(text_).substr(at, what.size()) == what;
  }
  bool looking_at(std::string_view what) const { return looking_at(what, at_); }

  void advance(size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    if (to > at_) line_starting_ = text_[to - 1] == '\n';
    at_ = to;
  }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  /// The data before a tag, as the tag's sign (`-`, `+` or none) leaves it.
  void push_data(size_t begin, size_t end, char sign, bool variable) {
    const std::string_view data = std::string_view(text_).substr(begin, end - begin);
    size_t keep = data.size();
    if (sign == '-') {
      keep = skip_space_back(data, keep);
    } else if (sign != '+' && !variable) {
      const size_t newline = data.rfind('\n');
      const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_begin > 0 || line_starting_) && skip_space(data, line_begin) == data.size())
        keep = line_begin;
    }
    if (keep > 0) push(TokenKind::data, std::string(data.substr(0, keep)));
  }

  char sign_at(size_t at) const {
    return at < text_.size() && (text_[at] == '-' || text_[at] == '+') ? text_[at] : '\0';
  }

  /// Data up to the next tag, then the tag.
  void root() {
    size_t tag = at_;
    while (true) {
      tag = text_.find('{', tag);
      if (tag == std::string::npos) {
        push(TokenKind::data, text_.substr(at_));
        advance(text_.size());
        return;
      }
      if (tag + 1 < text_.size() && (text_[tag + 1] == '{' || text_[tag + 1] == '%' || text_[tag + 1] == '#'))
        break;
      ++tag;
    }
    const char type = text_[tag + 1];
    const char sign = sign_at(tag + 2);
    push_data(at_, tag, sign, type == '{');
    advance(tag);
    advance(tag + (sign != '\0' ? 3 : 2));
    if (type == '#') {
      comment();
    } else if (type == '{') {
      push(TokenKind::variable_begin, "{{");
      expression("}}", TokenKind::variable_end);
    } else if (!raw_block()) {
      push(TokenKind::block_begin, "{%");
      expression("%}", TokenKind::block_end);
    }
  }

  /// Where a tag that closes with `close` at `at` ends; trim_blocks takes one newline.
  size_t after_close(size_t at, bool trims) const {
    const char sign = text_[at] == '-' || text_[at] == '+' ? text_[at] : '\0';
    const size_t end = at + (sign != '\0' ? 3 : 2);
    if (sign == '-') return skip_space(text_, end);
    if (trims && sign == '\0' && end < text_.size() && text_[end] == '\n') return end + 1;
    return end;
  }

  void comment() {
    const size_t close = text_.find("#}", at_);
    if (close == std::string::npos) error("a comment '{#' is never closed by '#}'");
    const bool has_sign = close > at_ && (text_[close - 1] == '-' || text_[close - 1] == '+');
    advance(after_close(has_sign ? close - 1 : close, true));
  }

  /// `{% raw %}` up to `{% endraw %}`, as data.
  bool raw_block() {
    size_t at = skip_space(text_, at_);
    if (!looking_at("raw", at)) return false;
    at = skip_space(text_, at + 3);
    const bool dash = looking_at("-%}", at);
    if (!dash && !looking_at("%}", at)) return false;
    at += dash ? 3 : 2;
    if (dash) at = skip_space(text_, at);
    advance(at);
    for (size_t tag = at_;; ++tag) {
      tag = text_.find("{%", tag);
      if (tag == std::string::npos) error("'{% raw %}' is never closed by '{% endraw %}'");
      const char sign = sign_at(tag + 2);
      size_t name = skip_space(text_, tag + (sign != '\0' ? 3 : 2));
      if (!looking_at("endraw", name)) continue;
      name = skip_space(text_, name + 6);
      if (!looking_at("%}", name) && !looking_at("-%}", name) && !looking_at("+%}", name)) continue;
      push_data(at_, tag, sign, false);
      advance(tag);
      advance(after_close(name, true));
      return true;
    }
  }

  /// Tokens inside a tag, up to and with its end.
  void expression(std::string_view close, TokenKind close_kind) {
    std::string open;
    while (true) {
      advance(skip_space(text_, at_));
      if (at_ >= text_.size()) error("a tag is never closed by '" + std::string(close) + "'");
      if (open.empty()) {
        const bool plus = close == "%}" && looking_at("+") && looking_at(close, at_ + 1);
        const bool minus = looking_at("-") && looking_at(close, at_ + 1);
        if (plus || minus || looking_at(close)) {
          push(close_kind, std::string(close));
          advance(after_close(at_, close == "%}"));
          return;
        }
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = text_[at_];
    if (is_name_start(c)) {
      size_t end = at_;
      while (end < text_.size() && (is_name_start(text_[end]) || is_digit(text_[end]))) ++end;
      push(TokenKind::name, text_.substr(at_, end - at_));
      advance(end);
    } else if (is_digit(c)) {
      number();
    } else if (c == '\'' || c == '"') {
      string(c);
    } else {
      op(open);
    }
  }

  size_t digits(size_t at, bool (*allowed)(char)) const {
    while (at < text_.size() &&
           (allowed(text_[at]) || (text_[at] == '_' && at + 1 < text_.size() && allowed(text_[at + 1])))) {
      ++at;
    }
    return at;
  }

  void number() {
    size_t end = digits(at_, is_digit);
    TokenKind kind = TokenKind::integer;
    const char prefix = end == at_ + 1 && text_[at_] == '0' && end < text_.size() ? text_[end] : '\0';
    if (prefix == 'x' || prefix == 'X' || prefix == 'o' || prefix == 'O' || prefix == 'b' || prefix == 'B') {
      end = digits(end + 1,
                   [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); });
    } else {
      const bool member = at_ > 0 && text_[at_ - 1] == '.';
      if (!member && end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
        kind = TokenKind::real;
        end = digits(end + 1, is_digit);
      }
      if (!member && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
        const size_t sign =
            end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? 2 : 1;
        if (end + sign < text_.size() && is_digit(text_[end + sign])) {
          kind = TokenKind::real;
          end = digits(end + sign, is_digit);
        }
      }
    }
    std::string value = text_.substr(at_, end - at_);
    std::erase(value, '_');
    push(kind, value);
    advance(end);
  }

  void string(char quote) {
    std::string value;
    size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != quote) {
      if (text_[at] == '\\' && at + 1 < text_.size()) {
        at = escape(at + 1, value);
      } else {
        value += text_[at++];
      }
    }
    if (at >= text_.size()) error("a string is never closed");
    push(TokenKind::string, std::move(value));
    advance(at + 1);
  }

  /// Appends what the escape whose letter is at `at` stands for; returns where it ends.
  size_t escape(size_t at, std::string& value) {
    const char c = text_[at];
    constexpr std::string_view kLetters = "nrtabfv\\'\"";
    constexpr std::string_view kMeanings = "\n\r\t\a\b\f\v\\'\"";
    if (const size_t found = kLetters.find(c); found != std::string_view::npos) {
      value += kMeanings[found];
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c >= '0' && c <= '7') {
      int code = 0;
      size_t end = at;
      while (end < text_.size() && end < at + 3 && text_[end] >= '0' && text_[end] <= '7') {
        code = code * 8 + (text_[end++] - '0');
      }
      append_utf8(code, value);
      return end;
    }
    const size_t size = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (size == 0) {
      value += '\\';
      return at;
    }
    uint32_t code = 0;
    for (size_t i = 1; i <= size; ++i) {
      const char digit = at + i < text_.size() ? text_[at + i] : '\0';
      const bool letter = (digit >= 'a' && digit <= 'f') || (digit >= 'A' && digit <= 'F');
      if (!is_digit(digit) && !letter) error("a string holds a cut '\\" + std::string(1, c) + "' escape");
      code = code * 16 + static_cast<uint32_t>(is_digit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) error("a string's escape is no character");
    append_utf8(static_cast<int32_t>(code), value);
    return at + 1 + size;
  }

  void op(std::string& open) {
    constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view each : kLong) {
      if (looking_at(each)) {
        push(TokenKind::op, std::string(each));
        advance(at_ + 2);
        return;
      }
    }
    const char c = text_[at_];
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      error("unexpected character '" + std::string(1, c) + "'");
    }
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) error("unexpected '" + std::string(1, c) + "'");
      open.pop_back();
    }
    push(TokenKind::op, std::string(1, c));
    advance(at_ + 1);
  }

  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize_template(std::string_view source) {
  if (source.size() > kMaxSource)
    fail(ErrorKind::model, "the chat template is larger than {} MiB", kMaxSource >> 20);
  if (const size_t bad = find_invalid_utf8(source); bad != std::string_view::npos) {
    fail(ErrorKind::model, "the chat template is not UTF-8 (byte {})", bad);
  }
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace retro::text::jinja
