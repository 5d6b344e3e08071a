#include "text/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>

#include "base/error.h"
#include "text/token_texts.h"

namespace retro::text {

// \s would also match U+180E in PCRE2, which Unicode does not count as white space.
#define RETRO_SPACE "\\p{White_Space}"
#define RETRO_NOT_SPACE "\\P{White_Space}"
#define RETRO_CONTRACTION "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
#define RETRO_TRAILING_SPACE RETRO_SPACE "+(?!" RETRO_NOT_SPACE ")|" RETRO_SPACE "+"

struct PretokenizerRules {
  std::string_view name;
  std::array<const char*, 4> patterns;  // tried in order; nullptr after the last
  bool ignores_merges;
};

namespace {

constexpr const char* kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" RETRO_SPACE "\\p{L}\\p{N}]+|" RETRO_TRAILING_SPACE;
constexpr const char* kLlama3 =
    RETRO_CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^" RETRO_SPACE
                      "\\p{L}\\p{N}]+[\\r\\n]*|" RETRO_SPACE "*[\\r\\n]+|" RETRO_TRAILING_SPACE;
constexpr const char* kQwen2 =
    RETRO_CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" RETRO_SPACE
                      "\\p{L}\\p{N}]+[\\r\\n]*|" RETRO_SPACE "*[\\r\\n]+|" RETRO_TRAILING_SPACE;
constexpr const char* kDigit = "\\p{N}";
constexpr const char* kDigits = "\\p{N}+";
constexpr const char* kThreeDigits = "[0-9]{3}";
constexpr const char* kPunctuation = "[\\p{P}$+<=>^~|]+";

constexpr PretokenizerRules kKnown[] = {
    {"default", {kPunctuation, kGpt2, kDigits, kThreeDigits}, false},
    {"gpt-2", {kGpt2, nullptr, nullptr, nullptr}, false},
    {"smollm", {kDigit, kGpt2, nullptr, nullptr}, false},
    {"llama-bpe", {kLlama3, nullptr, nullptr, nullptr}, true},
    {"qwen2", {kQwen2, nullptr, nullptr, nullptr}, false},
};

}  // namespace

std::string known_pretokenizers() {
  std::string names;
  for (const auto& rules : kKnown) {
    names += names.empty() ? "" : ", ";
    names += rules.name;
  }
  return names;
}

/// A compiled pattern.
struct Pretokenizer::Pattern {
  struct Free {
    void operator()(pcre2_code* compiled) const { pcre2_code_free(compiled); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
    void operator()(pcre2_match_context* limits) const { pcre2_match_context_free(limits); }
  };

  explicit Pattern(const char* pattern);
  void cut(std::string_view text, const std::vector<size_t>& pieces, std::vector<size_t>& ends) const;

  std::unique_ptr<pcre2_code, Free> code;
};

Pretokenizer::Pattern::Pattern(const char* pattern) {
  int error = 0;
  size_t offset = 0;
  code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                           PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  if (code == nullptr) {
    fail(ErrorKind::internal, "pre-tokenizer pattern {}: PCRE2 error {} at {}", pattern, error, offset);
  }
  // Where PCRE2 has no JIT for the machine, it interprets the pattern.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
}

void Pretokenizer::Pattern::cut(std::string_view text, const std::vector<size_t>& pieces,
                                std::vector<size_t>& ends) const {
  const std::unique_ptr<pcre2_match_data, Free> match(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  if (match == nullptr || context == nullptr) throw std::bad_alloc();
  // Every pattern is linear in the text; the limit would only cut off long runs of white space.
  pcre2_set_match_limit(context.get(), UINT32_MAX);
  const size_t* const span = pcre2_get_ovector_pointer(match.get());
  ends.clear();
  size_t begin = 0;
  for (const size_t end : pieces) {
    // A piece is matched as a text of its own, so that no lookahead sees past its end.
    const auto* const piece = reinterpret_cast<PCRE2_SPTR>(text.data() + begin);
    const size_t size = end - begin;
    for (size_t at = 0; at < size;) {
      const int found =
          pcre2_match(code.get(), piece, size, at, PCRE2_NO_UTF_CHECK, match.get(), context.get());
      if (found == PCRE2_ERROR_NOMATCH) {
        ends.push_back(end);
        break;
      }
      if (found < 0) fail(ErrorKind::internal, "splitting text into words: PCRE2 error {}", found);
      if (span[0] > at) ends.push_back(begin + span[0]);
      ends.push_back(begin + span[1]);
      at = span[1];
    }
    begin = end;
  }
}

Pretokenizer::Pretokenizer(std::string_view name) : rules_(nullptr) {
  if (name.empty()) name = "default";
  for (const auto& rules : kKnown) {
    if (rules.name == name) rules_ = &rules;
  }
  if (rules_ == nullptr) {
    fail(ErrorKind::model, "tokenizer.ggml.pre is {}; the pre-tokenizers known here are {}", printable(name),
         known_pretokenizers());
  }
  for (const char* pattern : rules_->patterns) {
    if (pattern != nullptr) patterns_.emplace_back(pattern);
  }
}

Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;

void Pretokenizer::split(std::string_view text, std::vector<size_t>& ends) const {
  ends.clear();
  if (text.empty()) return;
  std::vector<size_t> pieces{text.size()};
  for (const Pattern& pattern : patterns_) {
    pattern.cut(text, pieces, ends);
    std::swap(pieces, ends);
  }
  std::swap(pieces, ends);
}

bool Pretokenizer::ignores_merges() const {
  return rules_->ignores_merges;
}

}  // namespace retro::text
