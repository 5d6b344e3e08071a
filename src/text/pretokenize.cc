#include "text/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <new>

#include "base/error.h"
#include "text/token_texts.h"

namespace retro::text {

/// A compiled pattern.
struct Pretokenizer::Pattern {
  struct Free {
    void operator()(pcre2_code* compiled) const { pcre2_code_free(compiled); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
    void operator()(pcre2_match_context* limits) const { pcre2_match_context_free(limits); }
  };

  explicit Pattern(const char* pattern);
  int match(std::string_view piece, size_t at, pcre2_match_data* match, pcre2_match_context* context) const;
  void cut(std::string_view text, const std::vector<size_t>& pieces, std::vector<size_t>& ends) const;

  std::unique_ptr<pcre2_code, Free> code;
  bool compiled_to_machine_code = false;
};

Pretokenizer::Pattern::Pattern(const char* pattern) {
  if (pattern == nullptr) return;
  int error = 0;
  size_t offset = 0;
  code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                           PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  if (code == nullptr) {
    fail(ErrorKind::internal, "pre-tokenizer pattern {}: PCRE2 error {} at {}", pattern, error, offset);
  }
  compiled_to_machine_code = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;
}

int Pretokenizer::Pattern::match(std::string_view piece, size_t at, pcre2_match_data* match,
                                 pcre2_match_context* context) const {
  const auto* const bytes = reinterpret_cast<PCRE2_SPTR>(piece.data());
  if (compiled_to_machine_code) {
    const int found =
        pcre2_jit_match(code.get(), bytes, piece.size(), at, PCRE2_NO_UTF_CHECK, match, context);
    if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
  }
  // The interpreter has no small stack to run out of.
  return pcre2_match(code.get(), bytes, piece.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, context);
}

void Pretokenizer::Pattern::cut(std::string_view text, const std::vector<size_t>& pieces,
                                std::vector<size_t>& ends) const {
  const std::unique_ptr<pcre2_match_data, Free> found(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  if (found == nullptr || context == nullptr) throw std::bad_alloc();
  // Every pattern is linear in the text; the limit would only cut off long runs of white space.
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  const size_t* const span = pcre2_get_ovector_pointer(found.get());
  size_t begin = 0;
  for (const size_t end : pieces) {
    // A piece is matched as a text of its own, so that no lookahead sees past its end.
    const auto piece = text.substr(begin, end - begin);
    for (size_t at = 0; at < piece.size();) {
      const int outcome = match(piece, at, found.get(), context.get());
      if (outcome == PCRE2_ERROR_NOMATCH) {
        ends.push_back(end);
        break;
      }
      if (outcome < 0) fail(ErrorKind::internal, "splitting text into words: PCRE2 error {}", outcome);
      if (span[0] > at) ends.push_back(begin + span[0]);
      ends.push_back(begin + span[1]);
      at = span[1];
    }
    begin = end;
  }
}

Pretokenizer::Pretokenizer(std::string_view name) : rules_(find_pretokenizer(name)) {
  if (rules_ == nullptr) {
    fail(ErrorKind::model, "tokenizer.ggml.pre is {}; the pre-tokenizers known here are {}", printable(name),
         known_pretokenizers());
  }
  for (const CutRule& rule : rules_->rules) {
    if (!rule.empty()) patterns_.emplace_back(rule.pattern);
  }
}

Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;

void Pretokenizer::split(std::string_view text, std::vector<size_t>& ends) const {
  ends.clear();
  if (text.empty()) return;
  std::vector<size_t> pieces{text.size()};
  for (size_t i = 0; i < patterns_.size(); ++i) {
    ends.clear();
    if (const auto function = rules_->rules[i].function; function != nullptr) {
      size_t begin = 0;
      for (const size_t end : pieces) {
        function(text.substr(begin, end - begin), begin, ends);
        begin = end;
      }
    } else {
      patterns_[i].cut(text, pieces, ends);
    }
    std::swap(pieces, ends);
  }
  std::swap(pieces, ends);
}

}  // namespace retro::text
